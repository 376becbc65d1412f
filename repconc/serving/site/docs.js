// The API for people, drawn from the server's own description of it.

import { element } from "/site/results.js";

const description = await (await fetch("/openapi.json")).json();

function resolved(schema) {
  return schema?.$ref ? description.components.schemas[schema.$ref.split("/").pop()] : schema ?? {};
}

function typeOf(schema) {
  if (!schema) return "anything";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).filter((type) => type !== "null").join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  if (schema.enum || schema.const) return [schema.enum ?? schema.const].flat().map((value) => JSON.stringify(value)).join(" or ");
  return schema.type ?? "anything";
}

function boundsOf(schema) {
  const parts = [schema, ...(schema.anyOf ?? [])];
  const of = (name, text) => parts.filter((part) => part[name] !== undefined).map((part) => text(part[name]))[0];
  return [of("minimum", (n) => `at least ${n}`), of("maximum", (n) => `at most ${n}`), of("maxLength", (n) => `at most ${n} characters`),
    of("maxItems", (n) => `at most ${n}`), schema.default === undefined || schema.default === null ? undefined : `default ${JSON.stringify(schema.default)}`]
    .filter((text) => text !== undefined).join(", ");
}

function rowOf(name, schema, required) {
  const about = [schema, ...(schema.anyOf ?? [])].map((part) => part.description).find(Boolean) ?? "";
  const more = [about.replace(/\.$/, ""), boundsOf(schema)].filter(Boolean).join("; ");
  return element("tr", {}, element("td", {}, element("code", {}, name), required ? " *" : ""), element("td", {}, typeOf(schema)), element("td", {}, more));
}

const tableOf = (title, rows) => rows.length ? [element("h3", {}, title), element("table", {}, ...rows)] : [];

function fieldsOf(title, reference) {
  const schema = resolved(reference);
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => rowOf(name, field, schema.required?.includes(name)));
  return tableOf(title, rows);
}

function curlOf(verb, path, body) {
  const parts = ["curl"];
  if (verb !== "get") parts.push(`-X ${verb.toUpperCase()}`);
  parts.push(`'${location.origin}${path}${path === "/v1/search" && verb === "get" ? "?q=who+wrote+Carmen" : ""}'`);
  if (path.startsWith("/v1/documents") && verb !== "get") parts.push("\\\n  -H \"Authorization: Bearer $REPCONC_TOKEN\"");
  if (body) parts.push(`\\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`);
  return parts.join(" ");
}

function operationOf(path, verb, operation) {
  const request = operation.requestBody?.content["application/json"].schema;
  const answer = operation.responses["200"]?.content?.["application/json"]?.schema;
  const parameters = (operation.parameters ?? []).map((one) => rowOf(one.name, { ...one.schema, description: one.description ?? one.schema.description }, one.required));
  const refusals = Object.entries(operation.responses).filter(([status]) => status !== "200").map(([status, one]) =>
    element("tr", {}, element("td", {}, status), element("td", {}, one.description)));
  return element("details", { class: "operation", id: `${verb}-${path}` },
    element("summary", {}, element("span", { class: "verb" }, verb.toUpperCase()), element("code", {}, path), ` ${operation.summary ?? ""}`),
    element("p", {}, operation.description ?? ""),
    element("pre", {}, curlOf(verb, path, request ? resolved(request).examples?.[0] : null)),
    ...tableOf("Parameters", parameters), ...fieldsOf("Request", request), ...fieldsOf("Answer", answer),
    ...(answer && resolved(answer).examples ? [element("pre", {}, JSON.stringify(resolved(answer).examples[0], null, 2))] : []),
    ...tableOf("Refusals", refusals));
}

document.getElementById("about").textContent = description.info.description.replaceAll("`", "");
document.getElementById("operations").append(...Object.entries(description.paths).flatMap(([path, verbs]) =>
  Object.entries(verbs).map(([verb, operation]) => operationOf(path, verb, operation))));
document.querySelector("details")?.setAttribute("open", "");
