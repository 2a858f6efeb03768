//! Files that must be refused, and what is said about each; and files that are fine. How settings
//! are read and shown is in `tests/golden/check.md`.

mod pages;

use super::*;

const REFUSED: &str = include_str!("../../../tests/golden/refused.txt");

pub(super) fn parse(text: &str) -> Result<Config, ConfigError> {
    let env = |name: &str| match name {
        "TOKEN" => Some("hunter2".into()),
        "PORT" => Some("80".into()),
        "EMPTY" => Some("".into()),
        _ => None,
    };
    Config::parse_with(Path::new("t.toml"), text, &env, Servers::Some)
}

fn refusal(text: &str) -> ConfigError {
    let refused = parse(text).err();
    refused.unwrap_or_else(|| panic!("accepted:\n{text}"))
}

#[test]
fn bad_files_are_refused_with_all_faults_at_their_lines() {
    let mut wrong = Vec::new();
    for text in REFUSED.split("---\n").skip(1) {
        // a good server follows, so that each fault is one of a comment
        let error = refusal(&format!("{text}[servers.good]\ncommand = \"x\"\n"));
        let expected = (1..).zip(text.lines()).filter_map(|(line, text)| {
            let (key, message) = text.split_once(" # ")?.1.split_once(": ")?;
            Some((line, key, message))
        });
        let expected: Vec<(usize, _, _)> = expected.collect();
        assert!(!expected.is_empty(), "no fault is expected in\n{text}");
        let said = error.to_string();
        let is_it = |(fault, (line, key, message)): (&Fault, &(usize, &str, &str))| {
            fault.at.is_some_and(|(at, column)| {
                let place = format!("t.toml:{line}:{column}: `{key}`: ");
                at == *line && fault.message.contains(message) && said.contains(&place)
            })
        };
        let is_right =
            error.faults.len() == expected.len() && error.faults.iter().zip(&expected).all(is_it);
        if !is_right {
            wrong.push(format!("{text}{error}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_text_that_is_not_toml_is_refused_at_its_line() {
    for (text, line, expected) in [
        ("profile = \"standard\"\n[http\n", 2, "unclosed table"),
        (
            "profile = \"strict\"\n\nprofile = \"epd\"\n",
            3,
            "another `profile`",
        ),
        (
            "[http]\nlisten = \"1\"\nlisten = \"2\"\n",
            3,
            "another `listen`",
        ),
        ("{\n  \"mcpServers\": { \"a\": {} }\n}\n", 1, "found JSON"),
    ] {
        let error = refusal(text);
        assert_eq!(error.faults[0].at.unwrap().0, line, "{error}");
        assert!(error.faults[0].message.contains(expected), "{error}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"rules = \"standard\"\n# caf\xe9\n").unwrap();
    let error = Config::load(file.path(), Servers::Some)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains(":2:6: expected UTF-8 text"), "{error}");
    for text in ["", "[servers]\n", "profile = \"strict\"\n"] {
        let error = refusal(text).to_string();
        assert!(error.contains("expected at least one server"), "{error}");
        assert_eq!(error.matches("[servers.NAME]").count(), 1, "{error}");
    }
}
