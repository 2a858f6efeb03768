//! Servers run as children.
#![cfg(unix)]

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ServerEvent, ToolServer};
use callward_mcp::client::{
    CommandSpec, EraChoice, Target, Upstream, UpstreamBuilder, UpstreamStatus,
};
use futures_util::StreamExt;
use tempfile::TempDir;

use crate::script::{INITIALIZED, assert_fails, call, id};

const LONG: Duration = Duration::from_secs(60);

/// A shell script that greets us as a legacy server, then goes on as given.
fn shell(then: &str) -> UpstreamBuilder {
    let script = format!(
        "read hello; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{INITIALIZED}}}'; read ready; {then}"
    );
    let command = CommandSpec::new("/bin/sh").with_args(["-c", &script]);
    Upstream::builder(id(), Target::Command(command)).era(EraChoice::Legacy)
}

#[tokio::test]
async fn a_child_that_dies_is_restarted_and_operators_see_its_stderr() {
    let dir = TempDir::new().unwrap();
    let mark = dir.path().join("second");
    let mark = mark.display();
    let upstream = shell(&format!(
        "read call; if test -e {mark}; then \
           echo '{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"content\":[]}}}}'; read end; \
         else echo famous last words >&2; touch {mark}; exit 3; fi"
    ))
    .start();
    upstream.ready(LONG).await.unwrap();
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
    assert!(error.message().contains("exit status: 3"), "{error}");
    assert!(!error.message().contains("last words"), "{error}");
    let Some(ServerEvent::Down(reported)) = events.next().await else {
        panic!("a loss expected")
    };
    assert!(reported.contains("exit status: 3"), "{reported}");
    assert!(
        reported.ends_with("it last said: famous last words"),
        "{reported}"
    );
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    upstream.call(call("x", "{}")).await.unwrap();
}

#[tokio::test]
async fn the_last_words_of_a_child_are_told_without_its_secrets() {
    let long = "x".repeat(4090);
    let script = format!(
        "echo using $SETTING and $LONG >&2; echo db $SHOP_URL, $1 >&2; \
         echo api_key=abc >&2; echo {long} $LONG >&2; exit 1"
    );
    let command = CommandSpec::new("sh")
        .with_args(["-c", &script, "sh", "--token=t0k3n"])
        .with_env("SETTING", "hunter2")
        .with_env("LONG", "l0ng-v4lue")
        .with_env("SHOP_URL", "postgres://ada:pa55@db/shop");
    let upstream = Upstream::builder(id(), Target::Command(command)).start();
    let mut events = upstream.events().unwrap();
    let Some(ServerEvent::Down(reported)) = events.next().await else {
        panic!("a loss expected")
    };
    let said = reported.split_once("it last said: ").unwrap().1;
    let want = format!(
        "using [redacted] and [redacted] | db [redacted], --token=[redacted] | \
         api_key=[redacted] | {long} [cut]"
    );
    assert_eq!(said, want);
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert!(error.message().contains("exit status: 1"), "{error}");
    for text in [error.message(), &upstream.status().to_string()] {
        assert!(!text.contains("redacted") && !text.contains("db"), "{text}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let command = CommandSpec::new("/no/such/program");
    let upstream = Upstream::builder(id(), Target::Command(command)).start();
    let error = upstream.list_tools().await.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert!(error.message().contains("/no/such/program"), "{error}");
}

/// Reads a fifo to its end, which comes when the last process that writes to it is gone.
fn until_writers_are_gone(fifo: std::path::PathBuf) -> tokio::task::JoinHandle<String> {
    tokio::task::spawn_blocking(move || std::fs::read_to_string(fifo).unwrap())
}

#[tokio::test]
async fn what_a_child_has_started_ends_with_it() {
    for stubborn in ["", "trap '' TERM; "] {
        let dir = TempDir::new().unwrap();
        let fifo = dir.path().join("fifo");
        let path = fifo.display();
        let upstream = shell(&format!(
            "{stubborn}mkfifo {path}; (echo up; exec sleep 1000) > {path} & \
             echo '{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}}'; wait"
        ))
        .shutdown_grace(Duration::from_millis(20))
        .start();
        let mut events = upstream.events().unwrap();
        // announced once the fifo is there
        while events.next().await != Some(ServerEvent::ToolsChanged) {}
        let gone = until_writers_are_gone(fifo);
        if stubborn.is_empty() {
            upstream.shutdown().await;
        } else {
            drop(upstream);
        }
        assert_eq!(gone.await.unwrap(), "up\n");
    }
}

#[tokio::test]
async fn a_child_sees_what_it_is_given_and_none_of_our_secrets() {
    // `cargo test` sets this one for us
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let answer = r#"echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[],\"seen\":\"$GIVEN,$CARGO_MANIFEST_DIR\"}}"; read end"#;
    let script = format!(
        "read hello; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{INITIALIZED}}}'; read ready; read call; {answer}"
    );
    let command = CommandSpec::new("sh")
        .with_args(["-c", &script])
        .with_env("GIVEN", "yes");
    let upstream = Upstream::builder(id(), Target::Command(command))
        .era(EraChoice::Legacy)
        .start();
    upstream.ready(LONG).await.unwrap();
    let output = upstream.call(call("x", "{}")).await.unwrap();
    let body = String::from_utf8(output.body().to_vec()).unwrap();
    assert!(body.contains(r#""seen":"yes,""#), "{body}");
}

#[tokio::test]
async fn an_answer_beyond_the_limit_ends_neither_the_process_nor_another_call() {
    let answer = |id: &str, result: &str| {
        format!(r#"printf '%s' '{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{result}'; "#)
    };
    // two calls are read before either is answered
    let upstream = shell(&format!(
        "read one; read two; \
         {}head -c 17000000 /dev/zero | tr '\\0' 1; echo ']}}}}'; \
         {}echo ']}}}}'; read end",
        answer("2", ""),
        answer("3", ""),
    ))
    .start();
    upstream.ready(LONG).await.unwrap();
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    let long = tokio::spawn(upstream.call(call("long", "{}")));
    tokio::task::yield_now().await;
    let short = tokio::spawn(upstream.call(call("short", "{}")));
    let ends = [long.await.unwrap(), short.await.unwrap()];
    let failed: Vec<_> = ends.iter().filter_map(|end| end.as_ref().err()).collect();
    let [error] = failed[..] else {
        panic!("{ends:?}")
    };
    assert_fails(error, ErrorKind::TooLarge, Delivery::Answered);
    assert!(error.message().contains("16777216"), "{error}");
    assert_eq!(upstream.status(), UpstreamStatus::Up);
}
