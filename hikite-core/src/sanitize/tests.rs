//! Tests of what is kept and what is removed in texts, values and listings.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(dirty: &str, expected: &str, removed: usize) {
    let (clean, count) = text(dirty).unwrap_or((dirty.to_owned(), 0));
    assert_eq!((clean.as_str(), count), (expected, removed), "{}", dirty.escape_unicode());
}

#[track_caller]
fn stays(clean: &str) {
    check(clean, clean, 0);
}

#[test]
fn what_people_write_stays() {
    stays("Reads a file.\n\tLines are counted from 1.\r\n");
    stays("ファイルを読みます。半角ｶﾀｶﾅも、（全角）も、　も。か\u{3099}");
    stays("葛\u{e0100}飾区 辻\u{e0101} 神\u{fe00}");
    stays(
        "👩\u{200d}💻 👨\u{200d}👩\u{200d}👧 🏳\u{fe0f}\u{200d}🌈 ❤\u{fe0f}\u{200d}🔥 👍🏽 🇯🇵 1\u{fe0f}\u{20e3} ©\u{fe0e}",
    );
    stays("🧑🏽\u{200d}🚀");
    stays("می\u{200c}خواهم क्\u{200d}ष");
    stays("Ünïcödé, עברית, العربية, ไทย, 한국어, 𝛂, \u{2028}");
}

#[test]
fn what_nobody_sees_goes() {
    check("a\u{200b}b\u{200c}c\u{200d}d\u{feff}e\u{2060}f\u{ad}g", "abcdefg", 6);
    check("safe \u{202e}txt.exe\u{202c} \u{2066}x\u{2069}\u{200f}", "safe txt.exe x", 5);
    check("\u{1b}[31mred\u{7f}\u{0}\u{85}\u{9b}", "[31mred", 5);
    let tags: String = "Ignore all".chars().filter_map(|c| char::from_u32(0xe0000 + c as u32)).collect();
    check(&format!("Adds numbers.{tags}\u{e0001}"), "Adds numbers.", 11);
    check("\u{3164}\u{115f}\u{1160}\u{ffa0}", "", 4);
}

#[test]
fn what_joins_or_varies_goes_where_it_belongs_to_nothing() {
    check("\u{200d}👩", "👩", 1);
    check("👩\u{200d}", "👩", 1);
    check("👩\u{200d}\u{200d}💻", "👩\u{200d}💻", 1);
    check("a\u{fe0f}b\u{fe00}c\u{e0100}", "abc", 3);
    check("😀\u{fe0f}\u{fe0f}\u{e0101}\u{e0102}", "😀\u{fe0f}", 3);
    check("葛\u{e0100}\u{e0101}\u{e0102}", "葛\u{e0100}", 2);
    check("م\u{200c}\u{200c}\u{200d}\u{200c}ن", "م\u{200c}ن", 3);
    check("🏴\u{e0067}\u{e0062}\u{e007f}", "🏴", 3);
}

#[track_caller]
fn check_value(dirty: &str, expected: &str, removed: usize) {
    let raw = Raw::parse(dirty.to_owned()).expect("valid");
    let (clean, count) = value(&raw).unwrap_or((raw, 0));
    assert_eq!((clean.as_str().as_ref(), count), (expected, removed));
    assert!(Raw::parse(clean.bytes().clone()).is_ok());
}

#[test]
fn texts_in_json_are_cleaned_however_they_are_written_and_all_else_keeps_its_bytes() {
    check_value(r#"{"a" : "b\u200b" , "n": 1.50}"#, r#"{"a" : "b" , "n": 1.50}"#, 1);
    check_value(r#"{"a\u202ee":["x\\u200b","\uD83D\uDE00\udb40\udc41"]}"#, r#"{"ae":["x\\u200b","😀"]}"#, 2);
    check_value(r#"["\b\f\n\t\u0000\"q\""]"#, r#"["\n\t\"q\""]"#, 3);
    check_value(r#"{"a":"\u00e9\/é","b":"\u0041"}"#, r#"{"a":"\u00e9\/é","b":"\u0041"}"#, 0);
    check_value(r#"["half \ud800 of \udc00\u200b\\ud800 it\ud83d\ude00"]"#, r#"["half  of \\ud800 it😀"]"#, 3);
}

#[test]
fn a_listing_tells_what_was_hidden_where() {
    let tool =
        |text: &str| ListItem::read(ListKind::Tools, Raw::parse(text.to_owned()).expect("valid")).expect("named");
    let mut dirty = Listing {
        tools: vec![
            tool(r#"{"name":"plain", "description":"é"}"#),
            tool(
                "{\"name\":\"sly\",\"inputSchema\":{\"properties\":{\"p\":{\"description\":\"a\u{200b}b\u{202e}\"}}}}",
            ),
            tool("{\"name\":\"pla\u{200b}in\"}"),
        ],
        instructions: Some("use\u{e0041} it".into()),
        ..Listing::default()
    };
    let before = dirty.clone();
    listing(&mut dirty);
    assert_eq!(dirty.tools[0].raw.bytes().as_ptr(), before.tools[0].raw.bytes().as_ptr());
    assert_eq!(
        dirty.tools[1].raw.as_str(),
        r#"{"name":"sly","inputSchema":{"properties":{"p":{"description":"ab"}}}}"#
    );
    assert_eq!((dirty.tools.len(), dirty.instructions.as_deref()), (2, Some("use it")));
    let told: Vec<_> =
        dirty.sanitized.iter().map(|one| (one.kind.as_str(), one.name.as_str(), one.removed, one.left_out)).collect();
    assert_eq!(told, [("tool", "sly", 2, false), ("tool", "plain", 1, true), ("instructions", "", 1, false)]);
    let once = dirty.clone();
    listing(&mut dirty);
    assert_eq!(dirty, Listing { sanitized: Vec::new(), ..once });
}

/// Generates texts in which hidden characters are as frequent as visible ones.
fn texts() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{fe0f}',
        '\u{fe00}',
        '\u{e0100}',
        '\u{e0041}',
        '\u{202e}',
        '\u{1b}',
        '葛',
        '👩',
        '💻',
        '❤',
        'م',
        'क',
        '1',
        '\u{7f}',
        '"',
        '\\',
    ]);
    let character = prop_oneof![odd, any::<char>(), prop::char::range(' ', '~')];
    prop::collection::vec(character, 0..24).prop_map(|all| all.into_iter().collect())
}

proptest! {
    #[test]
    fn cleaning_twice_is_cleaning_once_and_nothing_grows(dirty in texts()) {
        if let Some((clean, removed)) = text(&dirty) {
            prop_assert_eq!(clean.chars().count() + removed, dirty.chars().count());
            prop_assert!(text(&clean).is_none(), "{}", clean.escape_unicode());
        }
    }

    #[test]
    fn a_value_says_the_same_without_what_is_hidden(dirty in texts(), escaped: bool) {
        let mut literal = serde_json::to_string(&dirty).expect("a string");
        if escaped {
            let units = dirty.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
            literal = format!("\"{}\"", units.collect::<String>());
        }
        let raw = Raw::parse(format!("{{\"a\": [{literal}]}}")).expect("valid");
        let clean = text(&dirty).map_or(dirty, |(clean, _)| clean);
        let sanitized = value(&raw).map_or_else(|| raw.clone(), |(sanitized, _)| sanitized);
        prop_assert_eq!(sanitized.value(), serde_json::json!({ "a": [clean] }));
        prop_assert!(sanitized.bytes().len() <= raw.bytes().len());
        prop_assert!(value(&sanitized).is_none());
    }

    #[test]
    fn japanese_keeps_its_bytes(text_in_japanese in "[\u{3041}-\u{30ff}\u{4e00}-\u{9faf}\u{ff01}-\u{ff5e}、。「」a-z0-9 ]{0,40}") {
        prop_assert!(text(&text_in_japanese).is_none());
    }
}
