//! Encodes documents with our TOON encoder, for comparison with other implementations: each line of stdin is
//! `["," or "\t" or "|", indent, document]`, each line of stdout the text as a JSON string.
//!
//! `echo '[",", 2, {"a": 1}]' | toon-encode`

use std::io::{BufRead, BufWriter, Error, ErrorKind, Result, Write, stdin, stdout};

use hikite_core::compact::toon::{Delimiter, ToonOptions, encode_with};
use serde_json::Value;

fn main() -> Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    for line in stdin().lock().lines() {
        let (delimiter, indent, document): (String, usize, Value) = serde_json::from_str(&line?)?;
        let options = ToonOptions { delimiter: delimiter_of(&delimiter)?, indent };
        serde_json::to_writer(&mut out, &encode_with(&document, options))?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

fn delimiter_of(text: &str) -> Result<Delimiter> {
    match text {
        "," => Ok(Delimiter::Comma),
        "\t" => Ok(Delimiter::Tab),
        "|" => Ok(Delimiter::Pipe),
        other => Err(Error::new(ErrorKind::InvalidInput, format!("no delimiter: {other:?}"))),
    }
}
