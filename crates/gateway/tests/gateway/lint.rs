//! `callward lint`: findings, their order, and what it ends with.

use serde_json::{Value, json};

use crate::support::{CALLWARD, ends, fed, text};

/// One finding of each severity, the worst last.
const TOOLS: &str = r#"{"name":"get_user","description":"Returns a user.","annotations":{"readOnlyHint":true}}
{"name":"list_users","description":"Lists the users.","annotations":{"readOnly":true,"openWorldHint":false}}
{"name":"delete_user","description":"Deletes a user.","annotations":{"readOnlyHint":true,"openWorldHint":false}}
"#;

/// The first two lines of them.
fn harmless() -> &'static str {
    TOOLS.rsplit_once("{\"name\":\"delete").unwrap().0
}

async fn ended(args: &[&str], input: &str) -> Option<i32> {
    let args = [&["lint"], args].concat();
    fed(&args, input.as_bytes()).await.status.code()
}

#[tokio::test]
async fn findings_are_told_tool_by_tool_with_a_sum() {
    let done = fed(&["lint"], TOOLS.as_bytes()).await;
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(
        text(&done.stdout),
        "\
get_user
  info     openWorldHint is missing, so clients take the tool for one that reaches outside  missing-open-world-hint
           say false if it stays within the server's own data, else true

list_users
  warning  readOnly true is a short form that the specification does not know  short-hint-name
           write `readOnlyHint`, or other clients read silence

delete_user
  error    readOnlyHint true, but the name leads with `delete`  read-only-destroys
           say false, and destructiveHint true; or rename the tool

1 error, 1 warning and 1 info in 3 tools
"
    );
    assert_eq!(text(&done.stderr), "");
}

#[tokio::test]
async fn findings_as_json_are_a_line_each_and_a_sum() {
    let done = fed(&["lint", "--json"], TOOLS.as_bytes()).await;
    let lines: Vec<Value> = text(&done.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        lines[2],
        json!({
            "code": "read-only-destroys", "severity": "error", "tool": "delete_user", "index": 2,
            "field": "readOnlyHint", "message": "true, but the name leads with `delete`",
            "advice": "say false, and destructiveHint true; or rename the tool",
        })
    );
    assert_eq!(
        lines[3],
        json!({"summary": {"tools": 3, "errors": 1, "warnings": 1, "infos": 1, "denied": 1}})
    );
}

#[tokio::test]
async fn what_fails_is_for_the_caller_to_say() {
    for (args, all, without_the_error) in [
        (&[][..], 1, 0),
        (&["--deny", "error"], 1, 0),
        (&["--strict"], 1, 1),
        (&["--deny", "warning"], 1, 1),
        (&["--deny", "info"], 1, 1),
        (&["--allow", "read-only-destroys"], 0, 0),
        (&["--strict", "--allow", "short-hint-name"], 1, 0),
        (
            &[
                "--deny",
                "info",
                "--allow",
                "short-hint-name",
                "--allow",
                "missing-open-world-hint",
            ],
            1,
            0,
        ),
    ] {
        assert_eq!(ended(args, TOOLS).await, Some(all), "{args:?}");
        assert_eq!(
            ended(args, harmless()).await,
            Some(without_the_error),
            "{args:?}"
        );
    }
}

#[tokio::test]
async fn an_unknown_code_is_answered_with_all_of_them() {
    let done = ends(&["lint", "--allow", "nonsense"]).await;
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    let codes = ends(&["lint", "--codes"]).await;
    assert!(codes.status.success());
    let listed: Vec<_> = text(&codes.stdout)
        .lines()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert!(listed.len() > 20, "{listed:?}");
    for code in listed {
        assert!(said.contains(code), "{code} in {said}");
    }
}

#[tokio::test]
async fn input_that_cannot_be_read_ends_with_2_and_the_rest_is_still_looked_at() {
    let broken = format!("{{\"name\":\n{TOOLS}");
    let done = fed(&["lint"], broken.as_bytes()).await;
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("standard input:1: is not JSON"));
    assert!(
        text(&done.stdout).contains("in 3 tools"),
        "{}",
        text(&done.stdout)
    );

    for input in ["", "[]", r#"{"tools":[]}"#] {
        let done = fed(&["lint"], input.as_bytes()).await;
        assert_eq!(done.status.code(), Some(2), "{input}");
        assert!(
            text(&done.stderr).contains("no tools"),
            "{}",
            text(&done.stderr)
        );
    }
    assert_eq!(ends(&["lint", "/nowhere"]).await.status.code(), Some(2));
    assert_eq!(
        ends(&["lint", "--deny", "all"]).await.status.code(),
        Some(2)
    );
    assert_eq!(
        ends(&["lint", "--", "/nowhere"]).await.status.code(),
        Some(2)
    );
}

#[tokio::test]
async fn hints_of_the_wrong_type_are_findings_and_not_unreadable() {
    let input = r#"{"name":"get_user","description":"Returns a user.","annotations":{"readOnlyHint":"yes","costHint":1e999}}"#;
    let done = fed(&["lint"], input.as_bytes()).await;
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    assert!(
        text(&done.stdout).contains("wrong-type"),
        "{}",
        text(&done.stdout)
    );
}

#[tokio::test]
async fn names_of_servers_cannot_command_the_terminal() {
    let input = r#"{"name":"get_\u001b[2Jx","annotations":{"readOnlyHint":true}}"#;
    let done = fed(&["lint"], input.as_bytes()).await;
    let said = text(&done.stdout);
    assert!(!said.contains('\u{1b}'), "{said}");
    assert!(said.contains("get_\\u{1b}[2Jx"), "{said}");
}

#[tokio::test]
async fn a_server_is_asked() {
    let done = ends(&["lint", "--strict", "--", CALLWARD, "sample"]).await;
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    assert!(said.contains("missing-read-only-hint"), "{said}");
    assert!(said.ends_with("in 9 tools\n"), "{said}");
}

#[tokio::test]
async fn codes_are_data_too() {
    let plain = ends(&["lint", "--codes"]).await;
    let done = ends(&["lint", "--codes", "--json"]).await;
    assert!(done.status.success());
    let mut codes = 0;
    for (line, shown) in text(&done.stdout).lines().zip(text(&plain.stdout).lines()) {
        let code: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        for key in ["code", "severity", "summary"] {
            assert!(
                shown.contains(code[key].as_str().unwrap()),
                "{key} of {line}"
            );
        }
        codes += 1;
    }
    assert_eq!(codes, text(&plain.stdout).lines().count());
}
