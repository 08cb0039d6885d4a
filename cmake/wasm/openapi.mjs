// Of openapi.json, what the engine itself reads: the queries of every route (src/server/openapi.cc). A page has no use for
// the rest, which would lengthen its download.
//   node openapi.mjs FROM TO
import { readFileSync, writeFileSync } from 'node:fs';

const [from, to] = process.argv.slice(2);
const { paths, components } = JSON.parse(readFileSync(from, 'utf8'));
const mapped = (object, change) => Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
/** A parameter without its description: a reference, a placeholder or a name. */
const bare = (parameter) => (parameter.name ? { name: parameter.name, in: parameter.in } : parameter);
const operation = ({ parameters }) => (parameters ? { parameters: parameters.map(bare) } : {});
writeFileSync(to, JSON.stringify({ paths: mapped(paths, (path) => mapped(path, operation)), components: { parameters: mapped(components.parameters, bare) } }));
