// Shows the OpenAPI document and sends requests to the API. The token stays in its field and is not stored.

import { chooseLanguage, currentLanguage, word } from "/docs/words.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const $ = (id) => document.getElementById(id);
let description = null;

// Creates an element with attributes, text and children. Nothing is parsed as HTML.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

function resolved(value) {
  if (!value?.$ref) return value;
  return value.$ref.slice(2).split("/").reduce((found, step) => found?.[step.replaceAll("~1", "/").replaceAll("~0", "~")], description);
}

function operations() {
  return Object.entries(description.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => ({ path, method, ...methods[method] })));
}

const pretty = (value) => JSON.stringify(value, null, 2);
const bodySchema = (operation) => operation.requestBody?.content?.["application/json"]?.schema;
const needsToken = (operation) => (operation.security ?? description.security).length > 0;

function draw() {
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = word(element.dataset.word);
  $("version").textContent = description.info.version;
  $("summary").textContent = word("summary");
  $("contents").setAttribute("aria-label", word("operations"));
  const open = new Set([...document.querySelectorAll("details[open]")].map((element) => element.id));
  const contents = [];
  const sections = [];
  for (const { name } of description.tags) {
    const group = operations().filter((operation) => operation.tags.includes(name));
    contents.push(make("h2", {}, word(name)), make("ul", {}, ...group.map((operation) =>
      make("li", {}, make("a", { href: `#${operation.operationId}` }, `${operation.method.toUpperCase()} ${operation.path}`)))));
    sections.push(make("section", {}, make("h2", {}, word(name)), ...group.map(drawOperation)));
  }
  const schemas = Object.entries(description.components.schemas);
  contents.push(make("h2", {}, word("Schemas")), make("ul", {}, ...schemas.map(([name]) =>
    make("li", {}, make("a", { href: `#schema-${name}` }, name)))));
  sections.push(make("section", {}, make("h2", {}, word("Schemas")), ...schemas.map(([name, schema]) =>
    make("details", { id: `schema-${name}` }, make("summary", {}, name), make("div", { class: "inside" }, make("pre", { tabindex: "0" }, pretty(schema)))))));
  $("contents").replaceChildren(...contents);
  $("content").replaceChildren(...sections);
  for (const id of open) $(id)?.setAttribute("open", "");
  showTarget();
}

function drawOperation(operation) {
  const parameters = (operation.parameters ?? []).map(resolved);
  const inside = make("div", { class: "inside" });
  if (needsToken(operation)) inside.append(make("p", { class: "soft" }, word("needsToken")));
  if (parameters.length) inside.append(make("h3", {}, word("parameters")), parameterTable(parameters));
  const schema = resolved(bodySchema(operation));
  if (schema) inside.append(make("h3", {}, word("body")), make("pre", { tabindex: "0" }, pretty(schema)));
  inside.append(make("h3", {}, word("answers")), answerTable(operation), make("h3", {}, word("tryIt")), tryForm(operation, parameters, schema));
  return make("details", { id: operation.operationId },
    make("summary", {},
      make("span", { class: `method ${operation.method}` }, operation.method),
      make("span", { class: "path" }, operation.path),
      make("span", { class: "soft" }, word(operation.operationId, operation.summary))),
    inside);
}

function parameterTable(parameters) {
  const rows = parameters.map((parameter) => make("tr", {},
    make("th", { scope: "row" }, make("code", {}, parameter.name)),
    make("td", {}, typeOf(parameter.schema), parameter.required ? `, ${word("required")}` : ""),
    make("td", {}, parameter.description ?? "")));
  return make("table", {}, ...rows);
}

function typeOf(schema) {
  const bounds = schema.minimum !== undefined && schema.maximum !== undefined ? ` ${schema.minimum}–${schema.maximum}` : "";
  const usual = schema.default !== undefined ? ` = ${schema.default}` : "";
  return `${schema.type}${bounds}${usual}`;
}

function answerTable(operation) {
  const rows = Object.entries(operation.responses).map(([status, response]) => {
    const answer = resolved(response);
    const schema = answer.content?.["application/json"]?.schema?.$ref?.split("/").pop();
    return make("tr", {}, make("th", { scope: "row" }, status), make("td", {}, answer.description),
      make("td", {}, schema ? make("a", { href: `#schema-${schema}` }, schema) : ""));
  });
  return make("table", {}, ...rows);
}

function tryForm(operation, parameters, schema) {
  const form = make("form", { autocomplete: "off" });
  for (const parameter of parameters) {
    const id = `${operation.operationId}-${parameter.name}`;
    const usual = parameter.in === "path" ? parameter.example ?? "" : "";
    form.append(make("div", { class: "field" }, make("label", { for: id }, parameter.name),
      make("input", { id, name: parameter.name, "data-in": parameter.in, value: usual, required: parameter.required })));
  }
  if (schema) {
    const id = `${operation.operationId}-body`;
    const text = make("textarea", { id, name: "body", spellcheck: "false" });
    text.value = pretty(schema.examples?.[0] ?? {});
    form.append(make("label", { for: id }, word("body")), text);
  }
  const button = make("button", { type: "submit" }, word("send"));
  const outcome = make("div", { "aria-live": "polite" });
  form.append(make("p", {}, button), outcome);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(operation, form, button, outcome);
  });
  return form;
}

function addressOf(operation, form) {
  let path = operation.path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("input[data-in]")) {
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.value !== "") for (const value of input.name === "tag" ? input.value.split(",") : [input.value]) query.append(input.name, value);
  }
  return query.size ? `${path}?${query}` : path;
}

async function send(operation, form, button, outcome) {
  const address = addressOf(operation, form);
  const headers = {};
  const token = $("token").value.trim();
  if (token && needsToken(operation)) headers.Authorization = `Bearer ${token}`;
  const body = form.elements.body?.value;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  button.disabled = true;
  button.textContent = word("sending");
  try {
    const answer = await fetch(address, { method: operation.method.toUpperCase(), headers, body, credentials: "omit", cache: "no-store" });
    const text = await answer.text();
    outcome.replaceChildren(
      make("p", {}, make("span", { class: `status ${answer.ok ? "good" : "bad"}` }, String(answer.status)), ` ${answer.headers.get("x-request-id") ?? ""}`),
      make("pre", { tabindex: "0" }, readable(text)),
      make("h3", {}, word("command")),
      make("pre", { tabindex: "0" }, command(operation, address, body)));
  } catch {
    outcome.replaceChildren(make("p", { class: "status bad" }, word("unreachable")));
  } finally {
    button.disabled = false;
    button.textContent = word("send");
  }
}

function readable(text) {
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text;
  }
}

// Returns the curl command, without the token, because people paste such lines elsewhere.
function command(operation, address, body) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl"];
  if (operation.method !== "get") parts.push(`-X ${operation.method.toUpperCase()}`);
  parts.push(quote(location.origin + address));
  if (needsToken(operation)) parts.push('-H "Authorization: Bearer $TOKEN"');
  if (body !== undefined) parts.push("-H 'Content-Type: application/json'", `-d ${quote(body)}`);
  return parts.join(" \\\n  ");
}

// Opens the operation that the link names.
function showTarget() {
  const target = location.hash && $(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
  }
}

$("language").addEventListener("change", (event) => {
  chooseLanguage(event.target.value);
  draw();
});
$("who").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", showTarget);

chooseLanguage(currentLanguage());
$("language").value = currentLanguage();
try {
  description = await (await fetch("/v1/openapi.json", { credentials: "omit" })).json();
  draw();
} catch {
  $("content").textContent = word("failed");
}
