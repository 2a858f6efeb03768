//! Signs of life, in both eras and over both transports.

use callward_core::{Delivery, ErrorKind, ToolServer};
use callward_mcp::client::Upstream;

use crate::script::{
    DISCOVERED, INITIALIZED, LONG, Peer, Script, assert_fails, calling, greeted_with,
};
use crate::script_http::{legacy as legacy_http, modern as modern_http};

async fn over_pipe(modern: bool) -> (Upstream, Peer, Script) {
    let greeting = if modern { DISCOVERED } else { INITIALIZED };
    greeted_with(greeting, 1 << 16, |_| {}).await
}

fn ping(upstream: &Upstream) -> tokio::task::JoinHandle<Result<(), callward_core::ToolError>> {
    let upstream = upstream.clone();
    tokio::spawn(async move { upstream.ping().await })
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_is_sent_ping_and_a_modern_one_discover() {
    for (modern, method, answer) in [(false, "ping", "{}"), (true, "server/discover", DISCOVERED)] {
        let (upstream, mut peer, script) = over_pipe(modern).await;
        // a server that refuses the question is there to refuse it
        for code in [0, -32601, -32603] {
            let pinging = ping(&upstream);
            let asked = peer.asked(method).await;
            match code {
                0 => peer.reply(&asked, answer).await,
                code => peer.refuse(&asked, code).await,
            }
            pinging.await.unwrap().unwrap();
        }
        let pinging = ping(&upstream);
        peer.message().await.unwrap(); // and dies of it
        drop(peer);
        let error = pinging.await.unwrap().unwrap_err();
        assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
        // nor does one that is not even started again
        drop(script);
        tokio::time::sleep(LONG).await;
        let error = upstream.ping().await.unwrap_err();
        assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    }
}

#[tokio::test]
async fn over_http_too() {
    for (modern, method) in [(true, "server/discover"), (false, "ping")] {
        let (upstream, mut server) = match modern {
            true => modern_http().await,
            false => legacy_http("s-1").await,
        };
        let pinging = ping(&upstream);
        server.asked(method).await.result(DISCOVERED).await;
        pinging.await.unwrap().unwrap();

        // what stands before a server that is gone answers, too
        let pinging = ping(&upstream);
        server.asked(method).await.answer(503, "", "none").await;
        let error = pinging.await.unwrap().unwrap_err();
        assert_fails(&error, ErrorKind::ServerFault, Delivery::Answered);
        assert!(error.kind().blames_server());

        server.stop().await;
        let error = upstream.ping().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectFailed, "{error}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_modern_any_more_is_greeted_again() {
    for status in [400, 404] {
        let (upstream, mut server) = modern_http().await;
        let pinging = ping(&upstream);
        let asked = server.asked("server/discover").await;
        asked.answer(status, "", "Bad Request: no session").await;
        let _ = pinging.await.unwrap();
        let calling = calling(&upstream, crate::script::call("x", "{}"));
        server.greet_legacy("one").await;
        let asked = server.answer(calling).await;
        assert_eq!(asked.headers["mcp-session-id"], "one");
    }
}
