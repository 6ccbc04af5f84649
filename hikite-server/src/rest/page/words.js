// The words of the page, in both languages. What is missing in one is shown in English.

const WORDS = {
  en: {
    skip: "Skip to the operations",
    token: "Token",
    tokenNote: "Kept in this page alone, gone when it is closed.",
    language: "Language",
    raw: "OpenAPI description",
    summary: "All tools of this gateway over plain HTTP.",
    Tools: "Tools", Registry: "Registry", Overview: "Overview", Projects: "Projects", Tokens: "Tokens", Health: "Health", Schemas: "Schemas",
    parameters: "Parameters", body: "Body", answers: "Answers", tryIt: "Try it", send: "Send", sending: "Sending…",
    needsToken: "needs a token", example: "Example", required: "required", command: "As a command",
    listTools: "Lists tools, page by page.",
    getTool: "Shows one tool.",
    callTool: "Runs a tool and returns the value of its result.",
    searchTools: "Finds tools by what they do.",
    listModules: "Lists the modules, each the tools of one source.",
    listCategories: "Lists the categories of the config.",
    registerTool: "Registers a tool that makes an HTTP request.",
    unregisterTool: "Removes a registered tool.",
    enableTool: "Enables a tool.",
    disableTool: "Disables a tool.",
    root: "Returns the health of the gateway.",
    health: "Returns the health of the gateway.",
    failed: "The description could not be read.",
    unreachable: "The gateway does not answer.",
  },
  ja: {
    skip: "操作の一覧へ",
    token: "トークン",
    tokenNote: "このページの中だけに置かれ、閉じれば消えます。",
    language: "言語",
    raw: "OpenAPI の記述",
    summary: "このゲートウェイの先にあるすべてのツールを、素の HTTP で。",
    Tools: "ツール", Registry: "登録", Overview: "概観", Projects: "プロジェクト", Tokens: "トークン", Health: "稼働状況", Schemas: "スキーマ",
    parameters: "パラメータ", body: "ボディ", answers: "応答", tryIt: "試す", send: "送信", sending: "送信中…",
    needsToken: "トークンが必要", example: "例", required: "必須", command: "コマンドで",
    listTools: "ツールをページごとに一覧します。",
    getTool: "ツールを一つ示します。",
    callTool: "ツールを実行し、結果の値を返します。",
    searchTools: "目的からツールを探します。",
    listModules: "モジュール（一つの供給元のツールのまとまり）を一覧します。",
    listCategories: "設定にあるカテゴリを一覧します。",
    registerTool: "HTTP リクエストを送るツールを登録します。",
    unregisterTool: "登録したツールを取り除きます。",
    enableTool: "ツールを有効にします。",
    disableTool: "ツールを無効にします。",
    root: "ゲートウェイが動いていることを示します。",
    health: "ゲートウェイが動いていることを示します。",
    failed: "記述を読み込めませんでした。",
    unreachable: "ゲートウェイが応答しません。",
  },
};

let language = (navigator.languages || [navigator.language]).some((tag) => /^ja\b/i.test(tag)) &&
  /^ja\b/i.test(navigator.language) ? "ja" : "en";

export const currentLanguage = () => language;

export function chooseLanguage(chosen) {
  language = chosen in WORDS ? chosen : "en";
  document.documentElement.lang = language;
}

export const word = (name) => WORDS[language][name] ?? WORDS.en[name] ?? name;
