//! `callward annotate`: lines in, lines out, in the same order.

use std::fmt::Write as _;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::support::{CALLWARD, Gateway, callward, ends, fed, file, text, within};

fn lines(output: &Output) -> Vec<Value> {
    text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

fn names(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_line_comes_out_for_each_line_in_the_same_order() {
    let mut input = String::new();
    for number in 0..500 {
        let verb = ["get", "delete", "update"][number % 3];
        let server = ["x", "y"][number % 2];
        writeln!(
            input,
            r#"{{"name":"{verb}_{number}","server":"{server}","unknown":[1]}}"#
        )
        .unwrap();
    }
    let done = fed(&["annotate"], input.as_bytes()).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(text(&done.stderr), "");
    let lines = lines(&done);
    assert_eq!(lines.len(), 500);
    for (number, line) in lines.iter().enumerate() {
        let (verb, level) = [
            ("get", "safe"),
            ("delete", "dangerous"),
            ("update", "dangerous"),
        ][number % 3];
        assert_eq!(line["name"], format!("{verb}_{number}"));
        assert_eq!(line["server"], ["x", "y"][number % 2]);
        assert_eq!(line["safetyLevel"], level, "{line}");
    }
}

#[tokio::test]
async fn a_line_has_the_effective_hints_and_the_plan() {
    let input = br#"{"name":"get_user","annotations":{"readOnly":true,"tags":["a"],"x-team":"b"}}"#;
    let line = lines(&fed(&["annotate", "-"], input).await).remove(0);
    let members: Vec<_> = line.as_object().unwrap().keys().collect();
    assert_eq!(members, ["annotations", "name", "plan", "safetyLevel"]);
    assert_eq!(line["annotations"]["readOnlyHint"], true);
    assert_eq!(line["annotations"]["idempotentHint"], true);
    assert_eq!(line["annotations"]["tags"], json!(["a"]));
    assert_eq!(line["annotations"]["x-team"], "b");
    assert_eq!(line["plan"]["effect"], "read_only");
    assert_eq!(line["plan"]["confirm"], "skip");
}

#[tokio::test]
async fn explain_adds_sources_reasons_and_warnings() {
    let input =
        br#"{"name":"delete_user","annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;
    let line = lines(&fed(&["annotate", "--explain"], input).await).remove(0);
    assert_eq!(
        line["evidence"]["destructiveHint"],
        json!({
            "source": "inferred", "strength": "strong",
            "reason": "the name leads with `delete`",
        })
    );
    assert_eq!(
        line["evidence"]["openWorldHint"],
        json!({"source": "declared", "reason": "the server says so"})
    );
    let warnings = line["warnings"].as_array().unwrap();
    assert!(
        warnings[0].as_str().unwrap().contains("read as false"),
        "{line}"
    );
    let quiet = fed(&["annotate", "--explain"], br#"{"name":"get_user"}"#).await;
    assert_eq!(lines(&quiet)[0]["warnings"], json!([]));
}

#[tokio::test]
async fn what_is_no_tool_keeps_its_line_and_the_others_are_annotated() {
    let input = "\u{feff}{\"name\":\"get_a\",\"description\":null}\r\n\r\n   \n{\"name\":}\n{\"title\":\"x\"}\n\
                 {\"name\":\"b\",\"annotations\":{\"readOnlyHint\":\"yes\"}}\n{\"name\":\"get c\\u0000\"}";
    let input = file(input.as_bytes());
    let path = input.path().to_str().unwrap();
    let done = ends(&["annotate", path]).await;
    assert_eq!(done.status.code(), Some(1));
    let lines = lines(&done);
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0]["safetyLevel"], "safe");
    assert_eq!(lines[1]["name"], Value::Null);
    assert!(
        lines[1]["error"].as_str().unwrap().contains("is not JSON"),
        "{}",
        lines[1]
    );
    assert_eq!(lines[2], json!({"name": null, "error": "has no `name`"}));
    assert_eq!(
        lines[3],
        json!({"name": "b", "error": "annotations.readOnlyHint is \"yes\", not true or false"})
    );
    assert_eq!(lines[4]["name"], "get c\u{0}", "any text is a name");
    let said = text(&done.stderr);
    assert_eq!(said.lines().count(), 3, "{said}");
    for (line, what) in [
        (4, "is not JSON"),
        (5, "has no `name`"),
        (6, "tool \"b\": annotations."),
    ] {
        assert!(
            said.contains(&format!("{path}:{line}: {what}")),
            "{line} in {said}"
        );
    }
}

#[tokio::test]
async fn a_tool_with_a_member_called_tools_keeps_its_line() {
    let done = fed(
        &["annotate"],
        b"{\"name\":\"run\",\"tools\":[]}\n{\"name\":\"get_b\"}\n",
    )
    .await;
    assert_eq!(names(&lines(&done)), ["run", "get_b"]);
}

#[tokio::test]
async fn depth_is_no_fault_of_the_json() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let input =
        format!("{{\"name\":\"get_a\",\"inputSchema\":{{\"x\":{deep}}}}}\n{{\"x\":{deep}}}\n");
    let done = fed(&["annotate"], input.as_bytes()).await;
    let lines = lines(&done);
    assert_eq!(lines[0]["safetyLevel"], "safe");
    let said = lines[1]["error"].as_str().unwrap();
    assert!(said.contains("nested too deeply"), "{said}");
    assert!(!said.contains("no JSON"), "{said}");
}

#[tokio::test]
async fn hints_that_a_gateway_refuses_are_annotated_with_their_problems() {
    let input =
        br#"{"name":"x","annotations":{"readOnlyHint":true,"destructiveHint":true,"costHint":-1}}"#;
    let done = fed(&["annotate"], input).await;
    assert!(done.status.success());
    let line = lines(&done).remove(0);
    assert_eq!(line["safetyLevel"], "dangerous");
    let fields: Vec<_> = line["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["field"].as_str().unwrap(), &problem["severity"]))
        .collect();
    let error = json!("error");
    assert_eq!(fields, [("readOnlyHint", &error), ("costHint", &error)]);
}

#[tokio::test]
async fn a_list_over_several_lines_is_read_as_one() {
    let listing = json!({"tools": [{"name": "get_a"}, {"name": 1}, {"name": "delete_b"}]});
    let input = file(serde_json::to_string_pretty(&listing).unwrap().as_bytes());
    let done = ends(&["annotate", input.path().to_str().unwrap()]).await;
    assert_eq!(done.status.code(), Some(1));
    let lines = lines(&done);
    assert_eq!(lines[0]["name"], "get_a");
    assert_eq!(lines[1]["error"], "`name` is a number, not a string");
    assert_eq!(lines[2]["name"], "delete_b");
    assert!(
        text(&done.stderr).contains(": tool 2: `name`"),
        "{}",
        text(&done.stderr)
    );
}

#[tokio::test]
async fn rules_profile_and_trust_are_those_of_the_command_line() {
    let ask = async |args: &[&str], tool: &Value| {
        let args = [&["annotate"], args].concat();
        lines(&fed(&args, tool.to_string().as_bytes()).await).remove(0)
    };
    let quiet = json!({"name": "thing"});
    assert_eq!(ask(&[], &quiet).await["plan"]["effect"], "mutating");
    let strict = ask(&["--profile", "strict"], &quiet).await;
    assert_eq!(strict["plan"]["effect"], "destructive");

    let claim = json!({"name": "thing", "annotations": {"readOnlyHint": true}});
    assert_eq!(ask(&[], &claim).await["safetyLevel"], "safe");
    let untrusted = ask(&["--trust", "untrusted"], &claim).await;
    assert_eq!(untrusted["safetyLevel"], "dangerous");
    let named = json!({"name": "delete_user", "annotations": {"readOnlyHint": true}});
    assert_eq!(ask(&[], &named).await["safetyLevel"], "dangerous");
    let trusted = ask(&["--trust", "trusted"], &named).await;
    assert_eq!(trusted["safetyLevel"], "safe");

    let tool = json!({"name": "x", "description": "Something to remove what was there."});
    let theirs = ask(&["--rules", "neurolink", "--explain"], &tool).await;
    let reason = &theirs["evidence"]["destructiveHint"]["reason"];
    assert!(reason.as_str().unwrap().starts_with("keyword"), "{theirs}");
}

#[tokio::test]
async fn a_wrong_word_on_the_command_line_ends_with_2() {
    for args in [
        ["annotate", "--rules", "ours"],
        ["annotate", "--profile", "lax"],
        ["annotate", "--trust", "full"],
    ] {
        let done = ends(&args).await;
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        assert!(
            text(&done.stderr).contains("expected"),
            "{}",
            text(&done.stderr)
        );
    }
    let both = ends(&["annotate", "file", "--url", "http://127.0.0.1:1/mcp"]).await;
    assert_eq!(both.status.code(), Some(2));
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_said() {
    let done = ends(&["annotate", "/nowhere/tools.jsonl"]).await;
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("/nowhere/tools.jsonl cannot be read"));
    let wide = fed(&["annotate"], b"\xff\xfe{\0").await;
    assert_eq!(wide.status.code(), Some(2));
    assert!(
        text(&wide.stderr).contains("UTF-16"),
        "{}",
        text(&wide.stderr)
    );
}

#[tokio::test]
async fn a_server_is_asked_over_stdio_and_over_http() {
    let done = ends(&["annotate", "--explain", "--", CALLWARD, "sample"]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    let asked = lines(&done);
    assert_eq!(asked.len(), 9);
    let delete = asked.iter().find(|line| line["name"] == "delete_order");
    assert_eq!(delete.unwrap()["plan"]["confirm"], "ask");

    let gateway = Gateway::sample().await;
    let done = ends(&["annotate", "--url", &gateway.url]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(names(&lines(&done)).contains(&"orders__delete_order"));
}

#[tokio::test]
async fn servers_are_judged_by_their_config_and_a_dead_one_hides_no_other() {
    let config = file(
        format!(
            r#"
profile = "strict"
[servers.dead]
command = "/nowhere/server"
[servers.shop]
command = {CALLWARD:?}
args = ["sample"]
[servers.shop.tools.get_order]
requiresConfirmation = true
"#
        )
        .as_bytes(),
    );
    let path = config.path().to_str().unwrap();
    let done = ends(&["annotate", "--explain", "--config", path]).await;
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    assert!(
        text(&done.stderr).contains("dead"),
        "{}",
        text(&done.stderr)
    );
    let asked = lines(&done);
    assert_eq!(asked.len(), 9);
    let get = asked
        .iter()
        .find(|line| line["name"] == "get_order")
        .unwrap();
    assert_eq!(get["server"], "shop");
    assert_eq!(get["plan"]["confirm"], "ask");
    assert_eq!(
        get["evidence"]["requiresConfirmation"]["source"],
        "operator"
    );
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_it_quietly() {
    let mut child = callward(&["annotate"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut stderr = child.stderr.take().unwrap();
    // far more than any pipe holds
    let input = "{\"name\":\"get_user\"}\n".repeat(20_000);
    within("the input", stdin.write_all(input.as_bytes()))
        .await
        .unwrap();
    drop(stdin);
    let mut first = String::new();
    within("a line", stdout.read_line(&mut first))
        .await
        .unwrap();
    assert!(first.starts_with("{\"name\":\"get_user\""), "{first}");
    drop(stdout);
    let mut said = String::new();
    within("the end", stderr.read_to_string(&mut said))
        .await
        .unwrap();
    assert_eq!(said, "");
    let status = within("the end", child.wait()).await.unwrap();
    assert!(status.success());
}
