//! Servers run as children.
#![cfg(unix)]

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, List, ServerEvent, ToolServer};
use callward_mcp::client::{CommandSpec, Target};
use futures_util::StreamExt;
use tempfile::TempDir;

use crate::script::{LEGACY, LONG, assert_fails, call, greeting, shell, start};

#[tokio::test]
async fn a_child_that_dies_is_restarted_and_operators_see_its_stderr() {
    let dir = TempDir::new().unwrap();
    let mark = dir.path().join("second");
    let mark = mark.display();
    let script = greeting(&format!(
        "read call; if test -e {mark}; then \
           echo '{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"content\":[]}}}}'; read end; \
         else echo famous last words >&2; touch {mark}; exit 3; fi"
    ));
    let upstream = shell(&script, |_| {});
    upstream.ready(LONG).await.unwrap();
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
    let Some(ServerEvent::Down(reported)) = events.next().await else {
        panic!("a loss expected")
    };
    let words = "exit status: 3); it last said: famous last words";
    assert!(reported.ends_with(words), "{reported}");
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
    let mut command = CommandSpec::new("sh").with_args(["-c", &script, "sh", "--token=t0k3n"]);
    for (name, value) in [
        ("SETTING", "hunter2"),
        ("LONG", "l0ng-v4lue"),
        ("SHOP_URL", "postgres://ada:pa55@db/shop"),
    ] {
        command.env.insert(name.into(), value.into());
    }
    let upstream = start(Target::Command(command), |_| {});
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
}

#[tokio::test]
async fn the_errors_of_a_child_are_shown_without_its_secrets() {
    let script = greeting(
        r#"read call; echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":7,\"message\":\"no $KEY\",\"data\":[\"$KEY\",\"$1\"]}}"; read call; echo "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":\"$KEY\"}}"; read end"#,
    );
    let args = ["-c", &script, "sh", "--token=t0k3n-x"];
    let mut command = CommandSpec::new("sh").with_args(args);
    command.env.insert("KEY".into(), "hunter22".into());
    let upstream = start(Target::Command(command), LEGACY);
    upstream.ready(LONG).await.unwrap();
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert_eq!(error.message, "no [redacted]");
    let data = br#"["[redacted]","--token=[redacted]"]"#;
    assert_eq!(error.data.as_deref(), Some(&data[..]));
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert!(error.message.contains("string \"[redacted]\""), "{error}");
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
        let script = greeting(&format!(
            "{stubborn}mkfifo {path}; (echo up; exec sleep 1000) > {path} & \
             echo '{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}}'; wait"
        ));
        let grace = Duration::from_millis(20);
        let upstream = shell(&script, |options| options.shutdown_grace = grace);
        let mut events = upstream.events().unwrap();
        // announced once the fifo is there
        while events.next().await != Some(ServerEvent::ListChanged(List::Tools)) {}
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
    let script = greeting(
        r#"read call; echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[],\"seen\":\"$GIVEN,$CARGO_MANIFEST_DIR\"}}"; read end"#,
    );
    let mut command = CommandSpec::new("sh").with_args(["-c", &script]);
    command.env.insert("GIVEN".into(), "yes".into());
    let upstream = start(Target::Command(command), LEGACY);
    upstream.ready(LONG).await.unwrap();
    let output = upstream.call(call("x", "{}")).await.unwrap();
    let body = String::from_utf8(output.body().to_vec()).unwrap();
    assert!(body.contains(r#""seen":"yes,""#), "{body}");
}
