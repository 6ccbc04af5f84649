// What the conformance suite asks a server for, upon either line of the TypeScript SDK.
//
// `kit` hides where the lines differ: how a handler notifies, asks and closes its stream. Everything is
// registered anew for each server object, because there is one for each session.
import { setTimeout as sleep } from "node:timers/promises";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

export const text = (words) => ({ content: [{ type: "text", text: words }] });
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const embedded = (uri, mimeType, words) => ({ type: "resource", resource: { uri, mimeType, text: words } });
const says = (content) => ({ messages: content.map((one) => ({ role: "user", content: one })) });
const words = (said) => ({ type: "text", text: said });

const form = (properties) => ({ type: "object", properties, required: Object.keys(properties) });

const DEFAULTS = {
  type: "object",
  properties: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
  required: [],
};

const choices = (...pairs) => pairs.map(([value, title]) => ({ const: value, title }));
const ENUMS = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: ["one", "two", "three"] },
    titledSingle: { type: "string", oneOf: choices(["a", "First"], ["b", "Second"], ["c", "Third"]) },
    legacyEnum: { type: "string", enum: ["x", "y", "z"], enumNames: ["Ex", "Why", "Zed"] },
    untitledMulti: { type: "array", items: { type: "string", enum: ["one", "two", "three"] } },
    titledMulti: { type: "array", items: { anyOf: choices(["a", "First"], ["b", "Second"], ["c", "Third"]) } },
  },
  required: [],
};

export const SCHEMA_2020_12 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

export function offer(server, kit) {
  offerTools(server, kit);
  offerQuestions(server, kit);
  offerResources(server, kit);
  offerPrompts(server, kit);
}

function offerTools(server, kit) {
  const tool = (name, handler) => server.registerTool(name, { description: `${name} of the suite` }, handler);
  const log = (context, data) =>
    kit.notify(context, { method: "notifications/message", params: { level: "info", data } });

  tool("test_simple_text", () => text("This is a simple text response for testing."));
  tool("test_image_content", () => ({ content: [image] }));
  tool("test_audio_content", () => ({ content: [{ type: "audio", data: SILENCE, mimeType: "audio/wav" }] }));
  tool("test_embedded_resource", () => ({
    content: [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
  }));
  tool("test_multiple_content_types", () => ({
    content: [
      words("Multiple content types test:"),
      image,
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  }));
  tool("test_error_handling", () => ({
    ...text("This tool intentionally returns an error for testing"),
    isError: true,
  }));
  tool("test_tool_with_logging", async (context) => {
    for (const step of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await log(context, step);
      await sleep(50);
    }
    return text("logged");
  });
  tool("test_tool_with_progress", async (context) => {
    const progressToken = kit.meta(context)?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      const params = { progressToken, progress, total: 100, message: `Completed step ${progress} of 100` };
      await kit.notify(context, { method: "notifications/progress", params });
      await sleep(50);
    }
    return text(String(progressToken ?? "no token"));
  });
  tool("test_logging_tool", async (context) => {
    await kit.log(context, "test_logging_tool ran");
    return text("logged");
  });
  tool("test_reconnection", async (context) => {
    kit.closeStream(context);
    await sleep(200);
    return text("Reconnection test completed");
  });
  tool("test_trigger_tool_change", () => {
    const grown = server.registerTool("test_grown_tool", { description: "comes and goes" }, () => text("grown"));
    kit.toolsChanged();
    grown.remove();
    return text("the tools changed");
  });
  tool("test_trigger_prompt_change", () => {
    const grown = server.registerPrompt("test_grown_prompt", { description: "comes and goes" }, () => says([words("grown")]));
    kit.promptsChanged();
    grown.remove();
    return text("the prompts changed");
  });
  kit.schemaTool(server, "json_schema_2020_12_tool", SCHEMA_2020_12, () => text("json_schema_2020_12_tool"));
}

// Questions in the middle of a call: what a server with sessions does.
function offerQuestions(server, kit) {
  const asking = (name, shape, ask) =>
    server.registerTool(name, { description: `${name} of the suite`, inputSchema: kit.z.object(shape) }, async (args, context) => {
      try {
        return text(await ask(args, context));
      } catch (error) {
        return { ...text(`cannot ask: ${error.message}`), isError: true };
      }
    });
  const answer = async (context, message, requestedSchema) => {
    const { action, content } = await kit.elicit(context, { mode: "form", message, requestedSchema });
    return `action=${action}, content=${JSON.stringify(content ?? {})}`;
  };
  asking("test_sampling", { prompt: kit.z.string() }, async ({ prompt }, context) => {
    const messages = [{ role: "user", content: words(prompt) }];
    const { content } = await kit.sample(context, { messages, maxTokens: 100 });
    return `LLM response: ${content.text}`;
  });
  asking("test_elicitation", { message: kit.z.string() }, async ({ message }, context) =>
    `User response: ${await answer(context, message, form({ response: { type: "string" } }))}`,
  );
  asking("test_elicitation_sep1034_defaults", {}, async (_, context) =>
    `Elicitation completed: ${await answer(context, "Please review", DEFAULTS)}`,
  );
  asking("test_elicitation_sep1330_enums", {}, async (_, context) =>
    `Elicitation completed: ${await answer(context, "Please choose", ENUMS)}`,
  );
}

function offerResources(server, kit) {
  const resource = (name, uri, mimeType, contents) =>
    server.registerResource(name, uri, { mimeType, description: name }, () => ({ contents: [{ uri, mimeType, ...contents }] }));
  resource("static-text", "test://static-text", "text/plain", { text: "This is the content of the static text resource." });
  resource("static-binary", "test://static-binary", "image/png", { blob: PIXEL });
  resource("watched-resource", "test://watched-resource", "text/plain", { text: "Watched resource content" });
  const template = new kit.ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, { mimeType: "application/json" }, (uri, { id }) => ({
    contents: [
      { uri: uri.href, mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) },
    ],
  }));
}

function offerPrompts(server, kit) {
  const prompt = (name, shape, handler) =>
    server.registerPrompt(name, { description: `${name} of the suite`, ...(shape && { argsSchema: kit.prompted(shape) }) }, handler);
  const completed = kit.completable(kit.z.string(), (value) => ["paris", "park", "party"].filter((one) => one.startsWith(value)));
  prompt("test_simple_prompt", null, () => says([words("This is a simple prompt for testing.")]));
  prompt("test_prompt_with_arguments", { arg1: completed, arg2: kit.z.string() }, ({ arg1, arg2 }) =>
    says([words(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)]),
  );
  prompt("test_prompt_with_embedded_resource", { resourceUri: kit.z.string() }, ({ resourceUri }) =>
    says([embedded(resourceUri, "text/plain", "Embedded resource content for testing."), words("Please process it.")]),
  );
  prompt("test_prompt_with_image", null, () => says([image, words("Please analyze the image above.")]));
}
