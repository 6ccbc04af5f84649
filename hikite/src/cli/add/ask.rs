//! The questions of `hikite add` without arguments. Answers are lines of stdin.

use std::io::{BufRead, Write};

use anyhow::{Result, bail};

use super::{AddArgs, ServerScope};

/// Asks for everything that a new server needs.
pub(super) fn complete(args: &mut AddArgs) -> Result<()> {
    args.name = Some(required("Name of the server in hikite")?);
    let answer = required("Command line, or address of a remote server (https://…)")?;
    let is_address = answer.starts_with("https://") || answer.starts_with("http://");
    if is_address {
        args.url = Some(answer);
        args.header = several("Header `Name: value` (empty to go on)")?;
    } else {
        args.command = words(&answer)?;
        args.env = several("Variable `NAME=VALUE`, or `NAME` from the environment (empty to go on)")?;
    }
    let description = line("Purpose in one line, for models (may be empty)")?.unwrap_or_default();
    args.description = Some(description).filter(|text| !text.is_empty());
    args.scope = match line("Define it in the config file or the store? [file]")?.as_deref() {
        None | Some("" | "file") => ServerScope::File,
        Some("store") => ServerScope::Store,
        Some(other) => bail!("`{other}` is neither `file` nor `store`."),
    };
    Ok(())
}

/// Asks one question; `None` at the end of stdin.
pub(super) fn line(question: &str) -> Result<Option<String>> {
    let mut out = std::io::stderr();
    let _ = write!(out, "{question}: ");
    let _ = out.flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer)?;
    Ok((read > 0).then(|| answer.trim().to_owned()))
}

fn required(question: &str) -> Result<String> {
    loop {
        match line(question)? {
            Some(answer) if answer.is_empty() => {}
            Some(answer) => return Ok(answer),
            None => bail!(
                "There is no answer on stdin.\nhint: Write `hikite add NAME https://…` or `hikite add NAME -- COMMAND`."
            ),
        }
    }
}

fn several(question: &str) -> Result<Vec<String>> {
    let mut answers = Vec::new();
    while let Some(answer) = line(question)?.filter(|answer| !answer.is_empty()) {
        answers.push(answer);
    }
    Ok(answers)
}

/// Splits a command line at spaces. Quotes keep a part together, and a backslash takes the next character as it is.
fn words(line: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            (_, Some(open)) if character == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(characters.next()),
            (_, None) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    if quote.is_some() {
        bail!("A quote in `{line}` is not closed.");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        assert_eq!(words(line).expect("valid"), expected, "{line}");
    }

    #[test]
    fn a_command_line_is_split_as_in_a_shell() {
        check("npx -y  server", &["npx", "-y", "server"]);
        check(r#"a "b c" 'd "e' f\ g """#, &["a", "b c", "d \"e", "f g", ""]);
        check(r"a 'b\c'", &["a", r"b\c"]);
        assert!(words("a 'b").is_err());
    }
}
