//! Tests of the storage format to Markdown and back.

use super::{from_markdown, to_markdown};

#[track_caller]
fn check(xhtml: &str, expected: &str) {
    assert_eq!(to_markdown(xhtml), expected);
}

/// Checks both directions.
#[track_caller]
fn check_both(markdown: &str, expected: &str) {
    assert_eq!(from_markdown(markdown), expected);
    check(expected, markdown);
}

#[test]
fn texts_are_written_and_read_back() {
    check_both("# 題\n\n段落 & <文>", "<h1>題</h1><p>段落 &amp; &lt;文&gt;</p>");
    check_both(
        "**太** *斜* ~~消~~ <u>下</u> `c` H<sub>2</sub>O",
        "<p><strong>太</strong> <em>斜</em> <del>消</del> <u>下</u> <code>c</code> H<sub>2</sub>O</p>",
    );
    check_both("a\\\nb", "<p>a<br/>b</p>");
    check_both("> 引用\n\n---", "<blockquote><p>引用</p></blockquote><hr/>");
    check_both("- a\n  1. b\n- c", "<ul><li><p>a</p><ol><li><p>b</p></li></ol></li><li><p>c</p></li></ul>");
    check_both(
        "| 名 |\n| --- |\n| a<br>b |",
        "<table><tbody><tr><th>名</th></tr><tr><td>a<br/>b</td></tr></tbody></table>",
    );
    check_both(
        "- [x] 済\n- [ ] 未",
        "<ac:task-list><ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status>\
         <ac:task-body>済</ac:task-body></ac:task><ac:task><ac:task-id>2</ac:task-id>\
         <ac:task-status>incomplete</ac:task-status><ac:task-body>未</ac:task-body></ac:task></ac:task-list>",
    );
}

#[test]
fn macros_are_written_and_read_back() {
    let code = |body: &str| {
        format!(
            "<ac:structured-macro ac:name=\"code\"><ac:parameter ac:name=\"language\">rust</ac:parameter>\
             <ac:plain-text-body><![CDATA[{body}]]></ac:plain-text-body></ac:structured-macro>"
        )
    };
    check_both("```rust\nif a < b && c {}\n```", &code("if a < b && c {}"));
    check_both("```rust\na[b[0]]>1\n```", &code("a[b[0]]]]><![CDATA[>1"));
    let panel = |name: &str| {
        format!(
            "<ac:structured-macro ac:name=\"{name}\"><ac:rich-text-body><p>文</p></ac:rich-text-body></ac:structured-macro>"
        )
    };
    check_both("> [!NOTE]\n> 文", &panel("info"));
    check_both("> [!TIP]\n> 文", &panel("tip"));
    check_both("> [!WARNING]\n> 文", &panel("note"));
    check_both("> [!CAUTION]\n> 文", &panel("warning"));
    check_both("[TOC]", "<ac:structured-macro ac:name=\"toc\"/>");
    check_both(
        "<details>\n<summary>題 &amp;</summary>\n\n文\n\n</details>",
        "<ac:structured-macro ac:name=\"expand\"><ac:parameter ac:name=\"title\">題 &amp;</ac:parameter>\
         <ac:rich-text-body><p>文</p></ac:rich-text-body></ac:structured-macro>",
    );
}

#[test]
fn links_and_images_are_written_and_read_back() {
    let link = |resource: &str| format!("<p><ac:link>{resource}<ac:link-body>題</ac:link-body></ac:link></p>");
    check_both("[題](https://a.b/?c=1&d=2)", "<p><a href=\"https://a.b/?c=1&amp;d=2\">題</a></p>");
    check_both("[題](<page:ABC/名前 1%2F2>)", &link("<ri:page ri:space-key=\"ABC\" ri:content-title=\"名前 1/2\"/>"));
    check_both("[題](page:名前)", &link("<ri:page ri:content-title=\"名前\"/>"));
    check_both("[題](attachment:図.png)", &link("<ri:attachment ri:filename=\"図.png\"/>"));
    check_both(
        "[題](page:名前#節)",
        "<p><ac:link ac:anchor=\"節\"><ri:page ri:content-title=\"名前\"/><ac:link-body>題</ac:link-body></ac:link></p>",
    );
    check_both(
        "[@山田](user:7)",
        "<p><ac:link><ri:user ri:account-id=\"7\"/><ac:link-body>@山田</ac:link-body></ac:link></p>",
    );
    check_both(
        "![図](https://a.b/c.png)",
        "<p><ac:image ac:alt=\"図\"><ri:url ri:value=\"https://a.b/c.png\"/></ac:image></p>",
    );
    check_both("![](attachment:図.png)", "<p><ac:image><ri:attachment ri:filename=\"図.png\"/></ac:image></p>");
}

#[test]
fn what_confluence_writes_itself_is_read() {
    check(
        "<p>See <ac:link><ri:page ri:content-title=\"頁\"/><ac:plain-text-link-body><![CDATA[こちら & <そこ>]]></ac:plain-text-link-body></ac:link>.</p>",
        "See [こちら & <そこ>](page:頁).",
    );
    check("<p><ac:link><ri:user ri:account-id=\"7\" /></ac:link>&nbsp;さん</p>", "[@7](user:7) さん");
    check("<p><ac:link ac:anchor=\"top\" /></p>", "[top](#top)");
    check(
        "<p><ac:link><ri:blog-post ri:content-title=\"x\" ri:space-key=\"S\" ri:posting-day=\"2026/07/04\"/></ac:link></p>",
        "[x](blog:S/2026-07-04/x)",
    );
    check(
        "<p><ac:emoticon ac:name=\"smile\" ac:emoji-fallback=\"🙂\"/><ac:emoticon ac:name=\"tick\"/></p>",
        "🙂:tick:",
    );
    check("<p>期限 <time datetime=\"2026-07-04\" /></p>", "期限 2026-07-04");
    check(
        "<p><ac:inline-comment-marker ac:ref=\"x\">文</ac:inline-comment-marker><ac:placeholder>書く</ac:placeholder></p>",
        "文書く",
    );
    check(
        "<ac:layout><ac:layout-section><ac:layout-cell><p>左</p></ac:layout-cell><ac:layout-cell><p>右</p></ac:layout-cell></ac:layout-section></ac:layout>",
        "左\n\n右",
    );
    check(
        "<ac:adf-extension><ac:adf-node type=\"panel\"><ac:adf-attribute key=\"x\">y</ac:adf-attribute></ac:adf-node><ac:adf-fallback><p>文</p></ac:adf-fallback></ac:adf-extension>",
        "文",
    );
    check(
        "<ac:image><ri:attachment ri:filename=\"a.png\"/><ac:caption><p>説明</p></ac:caption></ac:image>",
        "![](attachment:a.png)\n\n説明",
    );
    check(
        "<table><colgroup><col/></colgroup><tbody><tr><th><p>a</p></th><td><ul><li>b</li><li>c</li></ul></td></tr></tbody></table>",
        "|  |  |\n| --- | --- |\n| a | • b<br>• c |",
    );
}

#[test]
fn macros_of_every_kind_are_shown() {
    let with =
        |name: &str, inner: &str| format!("<ac:structured-macro ac:name=\"{name}\">{inner}</ac:structured-macro>");
    let parameter = |name: &str, value: &str| format!("<ac:parameter ac:name=\"{name}\">{value}</ac:parameter>");
    let body = "<ac:rich-text-body><p>文</p></ac:rich-text-body>";
    check(&format!("<p>状態 {}</p>", with("status", &parameter("title", "進行中"))), "状態 `進行中`");
    check(&with("jira", &parameter("key", "ABC-1")), "ABC-1");
    check(&with("jira", &parameter("jqlQuery", "project = A")), "[jira: jqlQuery=project = A]");
    check(&with("excerpt", body), "文");
    check(&with("panel", &(parameter("title", "題") + body)), "> **題**\n>\n> 文");
    check(&with("info", &(parameter("title", "題") + body)), "> [!NOTE]\n> **題**\n>\n> 文");
    check(&with("hologram", &(parameter("size", "3") + body)), "[hologram: size=3]\n\n文");
    check(&with("children", ""), "[children]");
    check(
        &with("view-file", "<ac:parameter ac:name=\"name\"><ri:attachment ri:filename=\"a.pdf\"/></ac:parameter>"),
        "[view-file: name=attachment:a.pdf]",
    );
    check(
        &with("plantuml", "<ac:plain-text-body><![CDATA[a -> b]]></ac:plain-text-body>"),
        "[plantuml]\n\n```\na -> b\n```",
    );
    check(&with("noformat", "<ac:plain-text-body><![CDATA[ a ]]></ac:plain-text-body>"), "```\n a \n```");
    check(&with("anchor", &parameter("", "x")), "");
}
