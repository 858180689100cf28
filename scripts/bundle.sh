#!/usr/bin/env bash
# Makes a folder that runs on another machine of the same architecture: the program, the libraries
# that are not part of a base system, and the data. Usage: scripts/bundle.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?bundle: expected a folder}
[ ! -e "$folder" ] || [ -z "$(ls -A "$folder")" ] || { echo "bundle: $folder is not empty" >&2; exit 2; }
mkdir -p "$folder/lib"
cp build/release/prony "$folder/prony.bin"
cp -r data LICENSE "$folder/"
# What the program opens where it finds it; MPI and the driver are the other machine's.
for plugin in build/release/libprony_{mpi,cuda}.so; do [ ! -e "$plugin" ] || cp "$plugin" "$folder/"; done
# libc, the loader and the compiler's runtime are the base system's.
ldd build/release/prony | awk '$3 ~ /^\// {print $3}' |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|ld-linux[^/]*)\.so' |
  while read -r library; do cp -L "$library" "$folder/lib/"; done
cat >"$folder/prony" <<'EOF'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PRONY_DATA="$here/data" exec "$here/prony.bin" "$@"
EOF
chmod +x "$folder/prony"
strip "$folder"/prony.bin $(find "$folder" -maxdepth 1 -name "*.so")
size=$(du -sm "$folder" | cut -f1)
[ "$size" -le 40 ] || { echo "bundle: $size MB, at most 40" >&2; exit 1; }
"$folder/prony" --version >/dev/null
echo "bundle: $folder, $size MB"
