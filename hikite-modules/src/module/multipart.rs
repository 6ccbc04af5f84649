//! Parser for multipart responses (`multipart/form-data`, RFC 7578): files with name, type and text.

use serde_json::{Value, json};

/// Parses the parts. Returns `None` if the content type has no boundary.
pub(crate) fn parts(content_type: &str, body: &[u8]) -> Option<Value> {
    let boundary = parameter(content_type, "boundary")?;
    let marker = format!("--{boundary}");
    let text = String::from_utf8_lossy(body);
    let mut parts = Vec::new();
    for part in text.split(marker.as_str()).skip(1) {
        if part.starts_with("--") {
            break;
        }
        let part = part.strip_prefix("\r\n").or_else(|| part.strip_prefix('\n')).unwrap_or(part);
        let Some((head, content)) = part.split_once("\r\n\r\n").or_else(|| part.split_once("\n\n")) else {
            continue;
        };
        let content = content.strip_suffix("\r\n").or_else(|| content.strip_suffix('\n')).unwrap_or(content);
        let header = |wanted: &str| {
            head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim())
            })
        };
        let place = header("content-disposition").unwrap_or_default();
        let name = parameter(place, "filename").or_else(|| parameter(place, "name"));
        parts.push(json!({ "filename": name, "type": header("content-type"), "text": content }));
    }
    Some(Value::Array(parts))
}

fn parameter(header: &str, wanted: &str) -> Option<String> {
    header.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.trim().split_once('=')?;
        name.eq_ignore_ascii_case(wanted).then(|| value.trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_name_and_text() {
        let body = "--x\r\nContent-Disposition: form-data; name=\"metadata\"\r\nContent-Type: application/json\r\n\r\n{}\r\n\
            --x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"index.ts\"\r\n\r\nline 1\r\n\r\n日本\r\n--x--\r\n";
        let expected = json!([
            { "filename": "metadata", "type": "application/json", "text": "{}" },
            { "filename": "index.ts", "type": null, "text": "line 1\r\n\r\n日本" },
        ]);
        assert_eq!(parts("multipart/form-data; boundary=x", body.as_bytes()), Some(expected.clone()));
        assert_eq!(parts("multipart/form-data; Boundary=\"x\"", body.as_bytes()), Some(expected));
        assert_eq!(parts("application/json", body.as_bytes()), None);
        assert_eq!(parts("multipart/form-data; boundary=y", body.as_bytes()), Some(json!([])));
    }
}
