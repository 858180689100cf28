// The part of JSON Schema that docs/schema uses, as src/prony/record/json_schema.hpp reads it: type, enum,
// const, minimum, maximum, properties, required, additionalProperties, items, minItems, maxItems, $ref to
// #/$defs/NAME. A keyword that is none of these is an error: it would be passed over in silence.
import { readFileSync } from 'node:fs';

const NOTES = new Set(['$schema', '$id', '$defs', 'title', 'description']);
const typeOf = (value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
const hasType = (value, type) => (type === 'integer' ? Number.isInteger(value) : typeOf(value) === type);

/** Faults of `value`, as "/path: what": none if it is what the schema says. */
function faults(value, schema, root, path) {
  if (schema === true) return [];
  if (schema === false) return [`${path}: unknown key`];
  const out = [];
  const say = (what) => out.push(`${path || '/'}: found ${JSON.stringify(value)?.slice(0, 80)}, ${what}`);
  for (const [keyword, rule] of Object.entries(schema)) {
    if (NOTES.has(keyword)) continue;
    else if (keyword === '$ref') out.push(...faults(value, root.$defs[rule.slice('#/$defs/'.length)], root, path));
    else if (keyword === 'type') [rule].flat().some((type) => hasType(value, type)) || say(`expected ${rule}`);
    else if (keyword === 'enum') rule.includes(value) || say(`expected one of ${rule}`);
    else if (keyword === 'const') value === rule || say(`expected ${rule}`);
    else if (keyword === 'minimum') typeof value !== 'number' || value >= rule || say(`expected at least ${rule}`);
    else if (keyword === 'maximum') typeof value !== 'number' || value <= rule || say(`expected at most ${rule}`);
    else if (keyword === 'minItems') !Array.isArray(value) || value.length >= rule || say(`expected ${rule} or more`);
    else if (keyword === 'maxItems') !Array.isArray(value) || value.length <= rule || say(`expected ${rule} or fewer`);
    else if (keyword === 'required') {
      if (typeOf(value) === 'object') for (const key of rule) key in value || out.push(`${path}/${key}: missing`);
    } else if (keyword === 'items') {
      if (Array.isArray(value)) value.forEach((one, i) => out.push(...faults(one, rule, root, `${path}/${i}`)));
    } else if (keyword === 'properties' || keyword === 'additionalProperties') {
      if (typeOf(value) !== 'object') continue;
      for (const [key, one] of Object.entries(value)) {
        const known = schema.properties && key in schema.properties;
        if (keyword === 'properties' && known) out.push(...faults(one, rule[key], root, `${path}/${key}`));
        if (keyword === 'additionalProperties' && !known) out.push(...faults(one, rule, root, `${path}/${key}`));
      }
    } else throw new Error(`schema ${root.title}: unknown keyword ${keyword}`);
  }
  return out;
}

/** Faults of a document against docs/schema/`name`.json. */
export function schemaFaults(document, name) {
  const schema = JSON.parse(readFileSync(new URL(`../../docs/schema/${name}.json`, import.meta.url), 'utf8'));
  return faults(document, schema, schema, '');
}
