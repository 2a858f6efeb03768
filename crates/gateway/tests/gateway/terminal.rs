//! What servers write is shown to people without what their terminal would obey.

use serde_json::json;

use crate::scripted;
use crate::support::{ends, fed, text};

/// The sequence that some terminals take for `ESC [`, and the one that turns the writing round.
const OBEYED: [char; 2] = ['\u{9b}', '\u{202e}'];

fn assert_plain(said: &str) {
    let obeyed = |c: char| (c.is_control() && c != '\n') || OBEYED.contains(&c);
    assert!(!said.contains(obeyed), "{said:?}");
}

#[tokio::test]
async fn texts_of_a_server_are_no_commands_to_the_terminal() {
    let server = scripted::command(&json!([{
        "name": "delete_user",
        "title": "T\u{9b}2J\u{202e}",
        "description": "Deletes.",
        "inputSchema": {"type": "object"},
        "annotations": {"title": "T\u{9b}2J\u{202e}", "tags": ["\u{9b}5m"]},
    }]));
    for command in [
        &["explain", "delete_user"][..],
        &["tools"],
        &["tools", "--by-safety"],
    ] {
        let mut args = command.to_vec();
        args.push("--");
        args.extend(server.iter().map(String::as_str));
        let done = ends(&args).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(text(&done.stdout).contains("delete_user"), "{command:?}");
        assert_plain(text(&done.stdout));
    }
}

#[tokio::test]
async fn names_and_hints_in_messages_are_no_commands_to_the_terminal() {
    let input =
        "{\"name\":\"a\u{9b}2J\u{202e}\",\"annotations\":{\"readOnlyHint\":\"\u{9b}1m\"}}\n";
    for command in ["annotate", "lint"] {
        let done = fed(&[command], input.as_bytes()).await;
        assert_eq!(done.status.code(), Some(1), "{command}");
        assert_plain(text(&done.stderr));
        if command == "lint" {
            assert!(text(&done.stdout).contains("a\\u{9b}2J\\u{202e}"));
            assert_plain(text(&done.stdout));
        }
    }
}
