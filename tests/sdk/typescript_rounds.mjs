// Questions as 2026-07-28 has them, on the TypeScript SDK 2.x: a result that asks, and a call that comes again with
// the answers. For clients with sessions the SDK asks in the middle of the call instead.
import { text } from "./typescript_offer.mjs";

const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const CONFIRM = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };

export function offerRounds(server, kit) {
  const { inputRequired, inputResponse, states } = kit;
  const tool = (name, handler) => server.registerTool(name, { description: `${name} of the suite` }, handler);
  const person = (message = "What is your name?", requestedSchema = NAME) => inputRequired.elicit({ message, requestedSchema });
  const model = (said) =>
    inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text: said } }], maxTokens: 50 });
  const answered = ({ mcpReq }, key) => {
    const view = inputResponse(mcpReq.inputResponses, key);
    return view.kind === "missing" ? undefined : view;
  };
  const nameIn = (view) => view.content?.name ?? view.result?.content?.name ?? "nobody";
  const once = (key, question, reply) => (context) => {
    const answer = answered(context, key);
    return answer ? text(reply(answer)) : inputRequired({ inputRequests: { [key]: question() } });
  };

  tool("test_input_required_result_elicitation", once("user_name", person, (answer) => `Hello, ${nameIn(answer)}!`));
  tool(
    "test_input_required_result_sampling",
    once("capital_question", () => model("What is the capital of France?"), () => "The model answered"),
  );
  tool("test_input_required_result_list_roots", once("client_roots", () => inputRequired.listRoots(), () => "Roots received"));
  tool("test_streaming_elicitation", once("word", person, () => "a word was given"));

  tool("test_input_required_result_request_state", async (context) => {
    if (answered(context, "confirm") && context.mcpReq.requestState() === "asked") return text("state-ok: confirmed");
    return inputRequired({
      inputRequests: { confirm: person("Please confirm", CONFIRM) },
      requestState: await states.mint("asked"),
    });
  });
  tool("test_input_required_result_tampered_state", async (context) => {
    const state = context.mcpReq.requestState();
    if (state) return text(`state-ok: ${state}`);
    return inputRequired({
      inputRequests: { confirm: person("Please confirm", CONFIRM) },
      requestState: await states.mint("round-1"),
    });
  });
  tool("test_input_required_result_multiple_inputs", async (context) => {
    if (["user_name", "greeting", "client_roots"].every((key) => answered(context, key))) return text("All inputs received.");
    return inputRequired({
      inputRequests: { user_name: person(), greeting: model("Generate a greeting"), client_roots: inputRequired.listRoots() },
      requestState: await states.mint("several"),
    });
  });
  tool("test_input_required_result_multi_round", async (context) => {
    const state = context.mcpReq.requestState() ?? { round: 0 };
    if (state.round === 2 && answered(context, "step2")) return text(`${state.name} has a colour.`);
    if (state.round === 1 && answered(context, "step1")) {
      const colour = { type: "object", properties: { color: { type: "string" } }, required: ["color"] };
      return inputRequired({
        inputRequests: { step2: person("Step 2: What is your favourite colour?", colour) },
        requestState: await states.mint({ round: 2, name: nameIn(answered(context, "step1")) }),
      });
    }
    return inputRequired({
      inputRequests: { step1: person("Step 1: What is your name?") },
      requestState: await states.mint({ round: 1 }),
    });
  });
  tool("test_input_required_result_capabilities", async (context) => {
    const declared = context.mcpReq.envelope?.[kit.CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities() ?? {};
    const inputRequests = {
      ...(declared.sampling && { sample: model("Say hello") }),
      ...(declared.elicitation && { ask: person() }),
    };
    return inputRequired({ inputRequests, requestState: await states.mint("by capability") });
  });
  tool("test_missing_capability", (context) => {
    const declared = context.mcpReq.envelope?.[kit.CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities() ?? {};
    if (!declared.sampling) throw new kit.MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
    return text("the client can sample");
  });

  server.registerPrompt("test_input_required_result_prompt", { description: "asks first" }, (context) => {
    const answer = answered(context, "user_context");
    if (answer) return { messages: [{ role: "user", content: { type: "text", text: "With that context." } }] };
    const schema = { type: "object", properties: { context: { type: "string" } }, required: ["context"] };
    return inputRequired({ inputRequests: { user_context: person("What context?", schema) } });
  });
}
