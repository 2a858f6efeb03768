//! `callward annotate`: streams of lines. What it prints is in `tests/golden`.

use std::fmt::Write as _;
use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::support::{Gateway, callward, ends, fed, text, within};

fn lines(output: &Output) -> Vec<Value> {
    text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
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
async fn a_server_is_asked_over_http() {
    let gateway = Gateway::sample().await;
    let done = ends(&["annotate", "--url", &gateway.url]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(
        lines(&done)
            .iter()
            .any(|line| line["name"] == "orders__delete_order")
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
