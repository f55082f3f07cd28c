// Prints as JSON what GitHub would not understand of a GraphQL request on stdin, by its published schema.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const packages = process.argv[2] ?? "";
const load = createRequire(join(packages, "here.js"));
const { buildSchema, parse, validate } = load("graphql");
const { getVariableValues } = load("graphql/execution/values");
const described = join(packages, "@octokit/graphql-schema/schema.graphql");
// It defines two fields twice, which is no matter here.
const schema = buildSchema(readFileSync(described, "utf8"), { assumeValidSDL: true });
const { query, variables } = JSON.parse(readFileSync(0, "utf8"));

const document = parse(query);
const [operation] = document.definitions;
const given = getVariableValues(schema, operation.variableDefinitions ?? [], variables);
const declared = (operation.variableDefinitions ?? []).map((each) => each.variable.name.value);
const strange = Object.keys(variables).filter((name) => !declared.includes(name));
const wrong = [
  ...validate(schema, document).map((each) => each.message),
  ...(given.errors ?? []).map((each) => each.message),
  ...strange.map((name) => `there is no variable ${name}`),
];
process.stdout.write(JSON.stringify(wrong));
