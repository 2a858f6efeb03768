//! Texts are plain and short: words, columns, heads of modules, names of tests, size of the docs.

use std::io;

use crate::sources::{root, sources};

/// Findings that are left, for each check. These numbers may only fall.
const LONG_LINES: usize = 0;
const PRIVATE_WORDS: usize = 8;

/// Words and phrases of a private dialect: each has a standard word.
const FORBIDDEN: &str = "anew, bears, house, in vain, is no, is none, lies, nobody, room, \
    says whether, so many, somebody, speak of, speaks of, spelt, tells of, told, \
    what became of, who waits, whoever";
const PERMITTED: &str = "is no longer, is no more, is no one, there is no, there is none";

/// Fails if there are more findings than `most`, and lists them.
fn at_most(most: usize, found: &[String]) {
    assert!(
        found.len() <= most,
        "{} findings, at most {most}:\n  {}",
        found.len(),
        found.join("\n  ")
    );
}

/// Each line of Rust or Markdown text with its place. Blocks of code in Markdown and generated
/// parts of pages are left out, and so is this file, which lists the words.
fn lines(extension: &str) -> io::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (path, text) in sources(root(), extension)? {
        let path = path.strip_prefix(root()).unwrap_or(&path);
        let (mut fenced, mut generated) = (false, false);
        for (number, line) in text.lines().enumerate() {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence && extension == "md";
            generated |= line.contains("<!-- begin generated");
            if !(fenced || generated || path.ends_with("workspace/texts.rs")) {
                let place = format!("{}:{}", path.display(), number + 1);
                found.push((place, line.to_owned()));
            }
            generated &= !line.contains("<!-- end generated");
        }
    }
    Ok(found)
}

#[test]
fn the_docs_have_at_most_25_200_words() -> io::Result<()> {
    let mut words = 0;
    for (path, text) in sources(&root().join("docs"), "md")? {
        if path.parent() == Some(&root().join("docs")) {
            words += text.split_whitespace().count();
        }
    }
    assert!(words <= 25_200, "{words} words");
    Ok(())
}

#[test]
fn heads_of_modules_have_at_most_25_lines() -> io::Result<()> {
    let mut found = Vec::new();
    for (path, text) in sources(root(), "rs")? {
        let lines = text.lines().take_while(|line| line.starts_with("//!"));
        let lines = lines.count();
        if lines > 25 {
            let path = path.strip_prefix(root()).unwrap_or(&path);
            found.push(format!("{}: {lines} lines", path.display()));
        }
    }
    at_most(0, &found);
    Ok(())
}

#[test]
fn text_has_at_most_100_columns() -> io::Result<()> {
    let comments = lines("rs")?.into_iter();
    let comments = comments.filter(|(_, line)| line.trim_start().starts_with("//"));
    let texts = comments.chain(lines("md")?);
    let found: Vec<_> = texts
        .filter(|(_, line)| line.chars().count() > 100)
        .filter(|(_, line)| {
            let text = line.trim_start_matches(['/', '!', ' ']);
            // tables, images and addresses cannot be wrapped
            !(text.starts_with('|') || line.starts_with("![") || line.contains("http"))
        })
        .map(|(place, _)| place)
        .collect();
    at_most(LONG_LINES, &found);
    Ok(())
}

#[test]
fn names_of_tests_have_at_most_70_characters() -> io::Result<()> {
    let (mut found, mut is_test) = (Vec::new(), false);
    for (place, line) in lines("rs")? {
        let line = line.trim_start();
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let line = line.strip_prefix("async ").unwrap_or(line);
        if let Some(name) = line.strip_prefix("fn ") {
            let name = name.split(['(', '<']).next().unwrap_or_default();
            if is_test && name.len() > 70 {
                found.push(format!("{place}: {name}"));
            }
            is_test = false;
        }
    }
    at_most(0, &found);
    Ok(())
}

#[test]
fn texts_and_names_use_the_words_of_the_field() -> io::Result<()> {
    let mut found = Vec::new();
    for (place, line) in lines("rs")?.into_iter().chain(lines("md")?) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = line.split(|c| !is_part(c));
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        let mut text = format!(" {} ", words.join(" ").to_lowercase());
        for permitted in PERMITTED.split(", ") {
            text = text.replace(&format!(" {permitted} "), " ");
        }
        for word in FORBIDDEN.split(", ") {
            if text.contains(&format!(" {word} ")) {
                found.push(format!("{place}: {word}"));
            }
        }
    }
    at_most(PRIVATE_WORDS, &found);
    Ok(())
}
