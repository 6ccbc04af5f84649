// A person at a real browser. Whatever goes wrong on a page fails the test: an error of a script, a request to another
// host, a dialog that nobody asked for.
import { load } from "./gateway.mjs";

const { chromium } = load("playwright-core");
const { source: axe } = load("axe-core");

export class Person {
  static async open(gateway, options = {}) {
    const person = new Person();
    person.gateway = gateway;
    const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
    // As root, which is how machines that build things run it, the browser cannot make a sandbox.
    person.browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    await person.change(options);
    return person;
  }

  /** Another window, which keeps who is logged in. */
  async change(options) {
    const storageState = this.context ? await this.context.storageState() : undefined;
    await this.context?.close();
    this.context = await this.browser.newContext({ viewport: { width: 1280, height: 900 }, storageState, ...options });
    this.troubles = [];
    this.allowed = [];
    this.page = await this.context.newPage();
    this.page.on("pageerror", (error) => this.troubles.push(`script: ${error.message}`));
    this.page.on("console", (message) => {
      // A page that tells of a refusal has its status; browsers call that an error.
      const isStatus = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isStatus) this.troubles.push(`console: ${message.text()}`);
    });
    this.page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      const known = origin === this.gateway.url || protocol === "data:" || this.allowed.includes(origin);
      if (!known) this.troubles.push(`request to ${request.url()}`);
    });
    this.page.on("dialog", (dialog) => {
      if (this.answer === undefined) this.troubles.push(`dialog: ${dialog.message()}`);
      return this.answer ? dialog.accept() : dialog.dismiss();
    });
  }

  async go(path) {
    const answer = await this.page.goto(path.startsWith("http") ? path : this.gateway.url + path);
    return answer.status();
  }

  async setUp() {
    await this.go(await this.gateway.link());
    await this.page.fill("[name=name]", "mina");
    await this.page.fill("[name=password]", "correct horse battery staple");
    await this.page.click("button");
    await this.page.waitForURL(/\/ui/);
  }

  async logIn() {
    await this.go("/oauth/login");
    await this.page.fill("[name=name]", "mina");
    await this.page.fill("[name=password]", "correct horse battery staple");
    await this.page.getByRole("button", { name: "Log in", exact: true }).click();
    await this.page.waitForURL(/\/ui/);
  }

  /** What axe holds to be serious or worse on the page as it is. */
  async barriers() {
    await this.page.evaluate(axe);
    const found = await this.page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    return found.violations
      .filter((one) => ["serious", "critical"].includes(one.impact))
      .map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`);
  }

  async leave() {
    await this.browser.close();
  }
}
