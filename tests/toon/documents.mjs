// Random documents, the same for the same seed: tables, tables with keys, groups in them, lists, odd names, texts that
// look like something else, Japanese, numbers of all kinds in all spellings, deep and empty things.
//
// What a document holds is what JavaScript can hold: a whole number beyond 2^53 that no double is would come out of
// its JSON.parse as another number, and names like "7" come first in its objects. Both are matters of JavaScript, not
// of TOON: documents are made as JavaScript values, so that they have neither.

const WORDS = ["id", "name", "title", "state", "owner", "labels", "created_at", "url", "count", "a", "b", "c", "x.y", "_t"];
const ODD_NAMES = [
  "", " ", "42", "0", "-1", "a b", "a-b", "a:b", "a,b", "a|b", "a\tb", "a\nb", '"', "\\", "[0]", "{}", "#", "- a", "true", "null",
  "氏名", "都道府県", "café", "é", "\u{feff}k", "🗼", "__proto__", "constructor", "toJSON", "length", "1.5", ".a", "a.", "9a", "\u0001",
];
const JAPANESE = ["東京都", "山田 太郎", "会議の議事録を共有します。", "「確認」", "ﾃｽﾄ", "が", "か\u3099", "全角：コロン", "改行\nあり", "，", "＃１", "　空白　"];
const ODD_TEXTS = [
  "", " ", "  ", "a ", " a", "\ta", "a\t", "true", "false", "null", "True", "NULL", "nul", "truee", "0", "42", "-1", "+1", "05", "1.", ".5",
  "1.5", "1e5", "1E-5", "1e", "1e+", "+", "-", "--", "-a", "- a", "+a", "1.2.3", "0x1f", "NaN", "Infinity", "٤٢", "#", "#a", "a#", "a #b",
  ":", "a:b", "a: b", ",", "a,b", "|", "a|b", "a\tb", '"', '"a"', 'a"b', "\\", "a\\b", "\\n", "[", "]", "[2]: a", "[2]{a}:", "{", "}", "{a}",
  "\n", "a\nb", "a\r\nb", "\u0000", "\u0008\u000c\u001f", "\u007f", "\u0085", "\u2028", "\u00a0", "\u3000", "\u{feff}", "\u{feff}8", "\u{feff}a",
  "a,\u0301b", "-\u0301", "#\u0301", "x:\u0301", "🗼", "👩‍👩‍👧", "0123456789abcde:", "0123456789abcdef:", "0123456789abcdef", "a".repeat(40) + ",",
  "https://example.org/a?b=c", "2026-11-20T10:00:00Z", "2026-11-20", "10:30", "1,234.5", "100%", "v1.2.3", "a/b.c", "x=y; z",
];
const NUMBERS = [
  0, -0, 1, -1, 10, 0.1, 0.5, 1.5, -2.25, 100, 1e6, 1e15, 1e16, 123456789012345680000, 1e20, 999999999999999900000, 1e21, 1.5e21, 1e22, 1e100,
  1e-4, 1e-5, 1.5e-5, 1e-6, 9.99e-7, 1e-7, 1.5e-10, 5e-324, 2.2250738585072014e-308, Number.MAX_VALUE, -Number.MAX_VALUE, Number.EPSILON,
  Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 53, 2 ** 60, 2 ** 63, 2 ** 64, -(2 ** 63), 1 / 3, 0.1 + 0.2, Math.PI, 1e3 / 7,
];

export class Documents {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** A value, and JSON that says the same. */
  next() {
    const value = this.#document();
    return { value, json: this.#spell(value) };
  }

  options() {
    return { delimiter: this.#pick([",", ",", "\t", "|"]), indent: this.#pick([2, 2, 2, 1, 3, 4, 8]) };
  }

  // --- the dice (a 32-bit generator with one addition and two multiplications) ---

  #random() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  #below(count) {
    return Math.floor(this.#random() * count);
  }

  #pick(choices) {
    return choices[this.#below(choices.length)];
  }

  #chance(share) {
    return this.#random() < share;
  }

  #times(count, make) {
    return Array.from({ length: count }, (_, at) => make(at));
  }

  // --- what documents are made of ---

  #document() {
    const kind = this.#below(20);
    if (kind === 0) return this.#scalar();
    if (kind === 1) return this.#deep(1 + this.#below(60));
    if (kind === 2) return this.#rows();
    if (kind === 3) return this.#keyed();
    return this.#value(1 + this.#below(5));
  }

  #value(depth) {
    if (depth === 0 || this.#chance(0.25)) return this.#scalar();
    switch (this.#below(8)) {
      case 0: return this.#rows();
      case 1: return this.#keyed();
      case 2: return this.#times(this.#below(6), () => this.#scalar());
      case 3: return this.#times(this.#below(4), () => this.#times(this.#below(4), () => this.#value(depth - 1)));
      case 4: return this.#times(this.#below(5), () => this.#value(depth - 1));
      case 5: return this.#pick([{}, [], [[]], [{}], [[], {}], { a: {} }, { a: [] }, [{}, {}], { a: {}, b: {} }]);
      default: return this.#object(this.#below(6), () => this.#value(depth - 1));
    }
  }

  #deep(levels) {
    let value = this.#value(1);
    for (let level = 0; level < levels; level++) {
      const inner = value;
      value = this.#chance(0.5)
        ? this.#object(1 + this.#below(2), (at) => (at === 0 ? inner : this.#scalar()))
        : this.#chance(0.5) ? [inner] : [inner, this.#scalar()];
    }
    return value;
  }

  /** Alike, but for an accident now and then. */
  #rows() {
    const columns = this.#columns(1 + this.#below(5), 2);
    const rows = this.#times(1 + this.#below(8), () => this.#row(columns));
    if (this.#chance(0.25)) rows[this.#below(rows.length)] = this.#accident(rows[0]);
    return rows;
  }

  #keyed() {
    const rows = this.#rows();
    return this.#object(rows.length, (at) => rows[at]);
  }

  /** Names, each with `null` for a scalar or with the columns of a group. */
  #columns(count, depth) {
    return this.#object(count, () => (depth > 0 && this.#chance(0.2) ? this.#columns(1 + this.#below(3), depth - 1) : null));
  }

  #row(columns) {
    const names = Object.keys(columns);
    if (this.#chance(0.1)) names.reverse();
    const row = {};
    for (const name of names) put(row, name, columns[name] === null ? this.#scalar() : this.#row(columns[name]));
    return row;
  }

  #accident(row) {
    const other = { ...row };
    const name = this.#pick(Object.keys(row));
    switch (this.#below(7)) {
      case 0: return this.#scalar();
      case 1: return [];
      case 2: return {};
      case 3: put(other, "more", this.#scalar()); return other;
      case 4: delete other[name]; return other;
      case 5: put(other, name, this.#pick([{}, [], [1], { z: 1 }, null, { a: [] }])); return other;
      default: delete other[name]; put(other, "instead", 1); return other;
    }
  }

  #object(count, make) {
    const object = {};
    for (let at = 0; at < count; at++) {
      const name = this.#name();
      if (!Object.hasOwn(object, name)) put(object, name, make(at));
    }
    return object;
  }

  #name() {
    if (this.#chance(0.8)) return this.#pick(WORDS);
    return this.#chance(0.7) ? this.#pick(ODD_NAMES) : this.#text();
  }

  #scalar() {
    const kind = this.#below(10);
    if (kind === 0) return null;
    if (kind === 1) return this.#chance(0.5);
    if (kind < 5) return this.#number();
    return this.#text();
  }

  #text() {
    switch (this.#below(6)) {
      case 0: return this.#pick(ODD_TEXTS);
      case 1: return this.#pick(ODD_TEXTS) + this.#pick(ODD_TEXTS);
      case 2: return this.#times(1 + this.#below(4), () => this.#pick(JAPANESE)).join(this.#pick(["", " ", "、"]));
      case 3: return this.#times(this.#below(24), () => String.fromCodePoint(this.#codePoint())).join("");
      default: return this.#times(1 + this.#below(6), () => this.#pick(WORDS)).join(this.#pick([" ", "-", "_", ", "]));
    }
  }

  #codePoint() {
    if (this.#chance(0.6)) return this.#below(0x80);
    const point = this.#below(this.#chance(0.8) ? 0x3100 : 0x110000);
    return point >= 0xd800 && point < 0xe000 ? 0x3042 : point;
  }

  #number() {
    switch (this.#below(6)) {
      case 0: return this.#pick(NUMBERS) * this.#pick([1, 1, -1]);
      case 1: return this.#below(100);
      case 2: return this.#below(2 ** 32) - 2 ** 31;
      case 3: return Math.round(this.#random() * 1e6) / 100;
      case 4: return (this.#random() - 0.5) * 10 ** (this.#below(60) - 30);
      default: return this.#bits();
    }
  }

  /** Any double there is. */
  #bits() {
    const view = new DataView(new ArrayBuffer(8));
    view.setUint32(0, this.#below(2 ** 32));
    view.setUint32(4, this.#below(2 ** 32));
    const number = view.getFloat64(0);
    return Number.isFinite(number) ? number : 0.25;
  }

  // --- JSON in other words than JSON.stringify's ---

  #spell(value) {
    if (typeof value === "number") return this.#spellNumber(value);
    if (Array.isArray(value)) return `[${value.map((item) => this.#spell(item)).join(",")}]`;
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${this.#spell(member)}`);
    return `{${members.join(",")}}`;
  }

  #spellNumber(number) {
    const usual = Object.is(number, -0) ? "-0" : String(number);
    switch (this.#below(4)) {
      case 0: return number.toExponential().replace("e", this.#pick(["e", "E"]));
      case 1: return /[.e]/.test(usual) ? usual : `${usual}.0`;
      case 2: return usual.includes(".") && !usual.includes("e") ? `${usual}00` : usual;
      default: return usual;
    }
  }
}

/** Also names that mean something to JavaScript. */
function put(object, name, value) {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}
