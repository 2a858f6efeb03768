//! Progress that takes another way than its call.

use std::sync::Arc;

use callward_mcp::client::EraChoice;

use crate::script::{INITIALIZED, RESULT, Reports, call, calling, progress};
use crate::script_http::Server;

#[tokio::test]
async fn progress_on_the_stream_of_the_session_reaches_its_call() {
    let mut server = Server::start().await;
    let upstream = server.upstream().era(EraChoice::Legacy).start();
    server.asked("initialize").await.result(INITIALIZED).await;
    let ready = server.asked("notifications/initialized").await;
    ready.answer(202, "", "").await;
    let mut get = server.stream().await;
    get.events().await;
    let (one, other) = (Arc::new(Reports::default()), Arc::new(Reports::default()));
    for sink in [&one, &other] {
        let running = calling(&upstream, call("x", "{}").with_progress(sink.clone()));
        let asked = server.asked("tools/call").await;
        let token = asked.json()["params"]["_meta"]["progressToken"].clone();
        let report = format!(r#"{{"progressToken":{token},"progress":1.0}}"#);
        let other = progress(r#"{"progressToken":4711,"progress":9}"#);
        get.event(&other).await;
        get.event(&progress(&report)).await;
        while sink.0.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*sink.0.lock(), std::slice::from_ref(&report));
        asked.result(RESULT).await;
        running.await.unwrap().unwrap();
        get.event(&progress(&report)).await; // too late
    }
    assert_eq!(one.0.lock().len(), 1);
}
