//! Edits by example, and properties over arbitrary trees in arbitrary layouts.

use proptest::prelude::*;
use serde_json::Map;

use super::*;

#[track_caller]
fn check_set(text: &str, path: &[&str], value: &Value, expected: &str) {
    let out = set(text, path, value).expect(text);
    assert_eq!(out, expected);
    assert_eq!(set(&out, path, value).expect("set again"), out, "setting it again changes nothing");
}

#[track_caller]
fn check_remove(text: &str, path: &[&str], expected: &str) {
    assert_eq!(remove(text, path).expect(text), expected);
}

#[test]
fn a_new_member_follows_the_layout_of_the_file() {
    let server = json!({"url": "u"});
    let path = ["mcpServers", "new"];
    check_set("", &path, &server, "{\n  \"mcpServers\": {\n    \"new\": {\n      \"url\": \"u\"\n    }\n  }\n}\n");
    check_set(
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {} // one\r\n\t\t// two\r\n\t}\r\n}\r\n",
        &path,
        &server,
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}, // one\r\n\t\t// two\r\n\t\t\"new\": {\r\n\t\t\t\"url\": \"u\"\r\n\t\t}\r\n\t}\r\n}\r\n",
    );
    check_set(
        "{\n    \"mcpServers\": {\n        \"a\": {},\n    },\n}",
        &path,
        &json!(1),
        "{\n    \"mcpServers\": {\n        \"a\": {},\n        \"new\": 1,\n    },\n}",
    );
    check_set("{\n   \"mcpServers\": { }\n}", &path, &json!(1), "{\n   \"mcpServers\": {\n      \"new\": 1\n   }\n}");
    check_set("{ // none\n}", &["new"], &json!(1), "{ // none\n  \"new\": 1\n}");
    check_set(r#"{"a": {"b": 1}}"#, &["a", "c"], &json!([1, 2]), r#"{"a": {"b": 1, "c": [1,2]}}"#);
    check_set(r#"{"a": {"b": 1,}}"#, &["a", "c"], &json!(2), r#"{"a": {"b": 1, "c": 2,}}"#);
}

#[test]
fn only_the_value_of_a_present_member_is_replaced() {
    check_set("{ \"a\" : 1 , // x\n \"b\":[ 1 ]}", &["a"], &json!(2), "{ \"a\" : 2 , // x\n \"b\":[ 1 ]}");
    check_set("{\n  \"a\": 1\n}", &["a"], &json!({"b": []}), "{\n  \"a\": {\n    \"b\": []\n  }\n}");
    // The last of two members of one name is the one in effect.
    check_set(r#"{"a": 1, "a": 2}"#, &["a"], &json!(3), r#"{"a": 1, "a": 3}"#);
}

#[test]
fn a_removed_member_takes_its_comma_and_its_lines() {
    check_remove("{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2\n  }\n}\n", &["b"], "{\n  \"a\": 1\n}\n");
    check_remove("{\n  \"a\": 1,\n  \"b\": 2,\n}\n", &["b"], "{\n  \"a\": 1,\n}\n");
    check_remove("{\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}\r\n", &["a"], "{\r\n  \"b\": 2\r\n}\r\n");
    check_remove(
        "{\n  // above\n  \"a\": 1, // beside\n  \"b\": 2\n}",
        &["a"],
        "{\n  // above\n  // beside\n  \"b\": 2\n}",
    );
    check_remove("{\"a\": 1, \"b\": 2}", &["b"], "{\"a\": 1}");
    check_remove("{\"a\": 1, \"b\": 2}", &["a"], "{\"b\": 2}");
    check_remove("{\"a\": 1, // x\n \"b\": 2}", &["b"], "{\"a\": 1 // x\n}");
    check_remove("{\"a\": 1 /* x */, \"b\": 2}", &["a"], "{ /* x */ \"b\": 2}");
    check_remove("{\"a\": {\"b\": 1}}", &["a", "b"], "{\"a\": {}}");
    check_remove(r#"{"a": 1, "b": 0, "a": 2}"#, &["a"], r#"{"b": 0}"#);
    check_remove("{\"a\": [1]}", &["a", "b"], "{\"a\": [1]}");
    check_remove("{} // none", &["a"], "{} // none");
}

#[test]
fn an_error_says_where_and_what() {
    for (text, at, message) in [
        ("[1]", 0, "the file is not an object"),
        (r#"{"a": 1}"#, 6, "`a` is not an object"),
        (r#"{"a": {"b": 1"#, 13, "expected `,` or `}`, found the end of the file"),
    ] {
        let error = set(text, &["a", "b"], &json!(1)).expect_err(text);
        assert_eq!((error.at, error.message.as_str()), (at, message), "{text}");
    }
}

/// A tree, and the pieces of layout and comments that are written between its parts.
fn text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i32>().prop_map(Value::from),
        "[a-c\"\\\\/*,{}é]{0,4}".prop_map(Value::from)
    ];
    let tree = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            3 => prop::collection::btree_map("[abc]", inner.clone(), 0..4).prop_map(|map| map.into_iter().collect()),
            1 => prop::collection::vec(inner, 0..3).prop_map(Value::Array),
        ]
    });
    let root =
        prop::collection::btree_map("[abc]", tree, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()));
    let piece = prop_oneof![
        6 => Just(""), 3 => Just(" "), 3 => Just("\n  "), 2 => Just("\r\n\t"), 1 => Just("\n"),
        1 => Just("// c,\u{a0}\n"), 1 => Just(" /* c } */ "), 1 => Just("/* c */\n "),
    ];
    (root, prop::collection::vec(piece, 1..24), any::<u64>()).prop_map(|(root, gaps, commas)| {
        let mut writer = Writer { out: String::new(), gaps, next: 0, commas };
        writer.gap();
        writer.value(&root);
        writer.gap();
        writer.out
    })
}

struct Writer {
    out: String,
    gaps: Vec<&'static str>,
    next: usize,
    /// One bit for each list and object: `1` for a trailing comma.
    commas: u64,
}

impl Writer {
    fn gap(&mut self) {
        self.out.push_str(self.gaps[self.next % self.gaps.len()]);
        self.next += 1;
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => self.items('{', '}', members.iter().map(|(name, value)| (Some(name), value))),
            Value::Array(items) => self.items('[', ']', items.iter().map(|item| (None, item))),
            leaf => self.out.push_str(&leaf.to_string()),
        }
    }

    fn items<'a>(
        &mut self,
        open: char,
        close: char,
        items: impl ExactSizeIterator<Item = (Option<&'a String>, &'a Value)>,
    ) {
        self.out.push(open);
        self.commas = self.commas.rotate_left(1);
        let last = items.len().checked_sub(usize::from(self.commas & 1 == 0));
        for (index, (name, value)) in items.enumerate() {
            self.gap();
            if let Some(name) = name {
                self.out.push_str(&Value::from(name.as_str()).to_string());
                self.gap();
                self.out.push(':');
                self.gap();
            }
            self.value(value);
            self.gap();
            self.out.push_str(if Some(index) == last { "" } else { "," });
        }
        self.gap();
        self.out.push(close);
    }
}

/// Returns everything but the given part, white space and commas, which the edit of a member may change.
fn rest(text: &str, member: Option<Range<usize>>) -> String {
    let member = member.unwrap_or_default();
    format!("{}{}", &text[..member.start], &text[member.end..]).replace(BLANK, "").replace(',', "")
}

fn json_of(text: &str) -> Value {
    jsonc::parse(text).expect(text).json()
}

/// Returns the name and the value of the member at the path.
fn span_of(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let root = jsonc::parse(text).expect(text);
    let mut node = &root;
    let mut span = None;
    for name in path {
        let member = node.object()?.get(name)?;
        span = Some(member.name_at..member.node.span.end);
        node = &member.node;
    }
    span
}

/// Sets the member in plain JSON; `None` if something on the way is not an object.
fn set_json(root: &mut Value, path: &[&str], value: Value) -> Option<()> {
    let (name, rest) = path.split_first()?;
    let object = root.as_object_mut()?;
    if rest.is_empty() {
        object.insert((*name).to_owned(), value);
        return Some(());
    }
    set_json(object.entry(*name).or_insert_with(|| Value::Object(Map::new())), rest, value)
}

/// Returns the position of the `}` of the object that contains the member at the path.
fn parent_end(text: &str, path: &[&str]) -> usize {
    let root = jsonc::parse(text).expect(text);
    let parents = &path[..path.len() - 1];
    parents
        .iter()
        .fold(&root, |node, name| &node.object().expect("an object").get(name).expect("present").node)
        .span
        .end
        - 1
}

fn commas(text: &str) -> usize {
    text.matches(',').count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn setting_changes_the_member_alone(
        text in text(),
        path in prop::collection::vec("[abcd]", 1..4),
        value in prop_oneof![Just(json!(7)), Just(json!({"x": [1, {}], "y": "z"}))],
    ) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let mut expected = json_of(&text);
        let is_possible = set_json(&mut expected, &path, value.clone()).is_some();
        let out = set(&text, &path, &value);
        prop_assert_eq!(out.is_ok(), is_possible);
        let Ok(out) = out else { return Ok(()) };
        prop_assert_eq!(json_of(&out), expected);
        prop_assert_eq!(set(&out, &path, &value), Ok(out.clone()));
        if let Some(old) = span_of(&text, &path) {
            let new = span_of(&out, &path).expect("present");
            prop_assert_eq!((&out[..new.start], &out[new.end..]), (&text[..old.start], &text[old.end..]));
            return Ok(());
        }
        // The topmost part that is new.
        let top = (1..=path.len()).find(|end| span_of(&text, &path[..*end]).is_none()).expect("absent");
        prop_assert_eq!(rest(&out, span_of(&out, &path[..top])), rest(&text, None));
        prop_assert!(commas(&out) - commas(&value.to_string()) <= commas(&text) + 1);
        let close = text.len() - parent_end(&text, &path[..top]);
        prop_assert_eq!(&out[out.len() - close..], &text[text.len() - close..], "from the end of the object on");
    }

    #[test]
    fn removing_takes_the_member_alone(text in text(), path in prop::collection::vec("[abcd]", 1..4)) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let out = remove(&text, &path).expect("valid");
        let Some(span) = span_of(&text, &path) else {
            prop_assert_eq!(out, text);
            return Ok(());
        };
        let mut expected = json_of(&text);
        let parent = path[..path.len() - 1].iter().try_fold(&mut expected, |value, name| value.get_mut(*name));
        parent.and_then(Value::as_object_mut).expect("an object").remove(path[path.len() - 1]);
        prop_assert_eq!(json_of(&out), expected);
        prop_assert!(commas(&out) + commas(&text[span.clone()]) + 1 >= commas(&text));
        prop_assert_eq!(rest(&out, None), rest(&text, Some(span)));
        let close = text.len() - parent_end(&text, &path);
        prop_assert_eq!(&out[out.len() - close..], &text[text.len() - close..], "from the end of the object on");
    }

    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = (set(&text, &["a", "b"], &json!(1)), remove(&text, &["a", "b"]));
    }
}
