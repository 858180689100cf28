#!/usr/bin/env bash
# Runs the two commands of the README in a bare Debian 12 root, from a clone of the last commit:
# what a newcomer sees. Needs root, debootstrap and the network. Leaves build/bare/*.log.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "bare-check: needs root" >&2; exit 3; }
command -v debootstrap >/dev/null || apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
out=$PWD/build/bare
root=$(mktemp -d /var/tmp/prony-bare.XXXXXX)
mkdir -p "$out"

cleanup() {
  for point in dev/pts dev proc; do umount -l "$root/$point" 2>/dev/null || true; done
  rm -rf --one-file-system "$root"
}
trap cleanup EXIT

debootstrap --variant=minbase --include=git,ca-certificates bookworm "$root" >"$out/debootstrap.log" 2>&1
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t devpts devpts "$root/dev/pts" 2>/dev/null || true
# The way out to the package registries is the host's: its resolver, proxies and CA bundle.
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
cp -L /etc/hosts "$root/etc/hosts"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
find /etc/apt/apt.conf.d -maxdepth 1 -iname '*prox*' -exec cp {} "$root/etc/apt/apt.conf.d/" \;
git clone -q . "$root/root/prony"

variables=(HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb
  NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
  NPM_CONFIG_CAFILE=/etc/ssl/certs/ca-certificates.crt)
while IFS= read -r line; do variables+=("$line"); done < <(env | grep -iE '^(https?|no)_proxy=' || true)
inside() { chroot "$root" /usr/bin/env -i "${variables[@]}" /bin/bash -c "cd /root/prony && $1"; }

for step in "demo-first:./run demo" "demo-again:./run demo" "test:./run test"; do
  name=${step%%:*} command=${step#*:}
  echo "== bare: $command"
  start=$(date +%s)
  inside "$command" >"$out/$name.log" 2>&1 && code=0 || code=$?
  echo "   exit $code after $(($(date +%s) - start)) s; log build/bare/$name.log"
  tail -n 3 "$out/$name.log" | sed 's/^/   /'
  [ "$code" = 0 ] || exit 1
  if [ "$name" = demo-again ]; then cp -r "$root/root/prony/out/demo" "$out/"; fi
done
