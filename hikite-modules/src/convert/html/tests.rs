//! Tests with HTML as written by calendars, mail programs and task lists.

use super::to_markdown;

#[track_caller]
fn check(html: &str, expected: &str) {
    assert_eq!(to_markdown(html), expected);
}

#[test]
fn a_text_without_tags_keeps_its_lines() {
    check("", "");
    check("一行目\n二行目\r\n\r\n四行目", "一行目\\\n二行目\n\n四行目");
    check("a <b>太字</b>\nb & c &lt;d&gt;", "a **太字**\\\nb & c \\<d>");
    check("# not a heading\n- not an item", "\\# not a heading\\\n\\- not an item");
}

#[test]
fn lines_of_calendars_are_lines() {
    check(
        "会議です<br>場所: <a href=\"https://a.b/c\">東京</a><br><br>以上",
        "会議です\\\n場所: [東京](https://a.b/c)\n\n以上",
    );
    check("<ul><li>a</li><li>b</li></ul>", "- a\n- b");
    check("<span>Join: </span><a href=\"https://a.b/\">https://a.b/</a>", "Join: <https://a.b/>");
}

#[test]
fn bodies_of_mail_programs_are_read() {
    check(
        "<html><head>\r\n<meta http-equiv=\"Content-Type\" content=\"text/html; charset=utf-8\"><title>t</title><style>p { color: red }</style></head>\
         <body><div>一</div>\r\n<div><br></div><div>&nbsp;二&nbsp; 三</div></body></html>",
        "一\n\n二 三",
    );
    check("<p class=MsoNormal><b><span style='x'>太 </span></b>字<o:p></o:p></p>", "**太** 字");
    check("<script>alert(1)</script><p>a<!-- b --></p>", "a");
}

#[test]
fn every_usual_tag_has_its_sign() {
    for (html, expected) in [
        ("<h2>題 <i>斜</i></h2><p>a</p>", "## 題 *斜*\n\na"),
        ("<ol start=3><li>a<li>b<ul><li>c</ul></ol>", "3. a\n4. b\n   - c"),
        ("<blockquote>a<p>b</blockquote>", "> a\n>\n> b"),
        (
            "<pre><code class=\"language-rust\">fn a() {\n  1 &lt; 2\n}\n</code></pre>",
            "```rust\nfn a() {\n  1 < 2\n}\n```",
        ),
        ("<table><tr><th>a<th>b<tr><td colspan=2>c|</table>", "| a | b |\n| --- | --- |\n| c\\| |  |"),
        ("<img src=\"https://a.b/c.png\" alt=\"図\">", "![図](https://a.b/c.png)"),
        (
            "<details open><summary>題</summary>a<p>b</details>",
            "<details>\n<summary>題</summary>\n\na\n\nb\n\n</details>",
        ),
        ("<ul><li><input type=checkbox checked> a</li><li><input type=\"checkbox\">b</li></ul>", "- [x] a\n- [ ] b"),
        ("<dl><dt>語</dt><dd>説明</dd></dl>", "**語**\n\n説明"),
        ("a<hr>b", "a\n\n---\n\nb"),
        (
            "<p>x<sup>2</sup> <kbd>Ctrl</kbd> <ins>新</ins> <s>旧</s> <q>引</q></p>",
            "x<sup>2</sup> `Ctrl` <u>新</u> ~~旧~~ “引”",
        ),
        ("<p>東<ruby>京<rp>(</rp><rt>きょう</rt><rp>)</rp></ruby></p>", "東京きょう"),
        ("<b><p>a</p><p>b</p></b>", "**a**\n\n**b**"),
    ] {
        check(html, expected);
    }
}
