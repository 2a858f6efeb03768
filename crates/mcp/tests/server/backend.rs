//! A backend whose tools show what reached them.

use std::sync::Arc;

use bytes::Bytes;
use callward_core::{BoxFuture, BoxStream, Delivery, ErrorKind, ServerId, ToolError, ToolOutput};
use callward_mcp::server::{Asked, Backend, CallRequest, Introduction, ToolListing};
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc, watch};

/// A result with spelling no serializer would produce.
pub(crate) const ODD_RESULT: &str =
    r#"{ "content" : [], "isError" : false, "x-vendor":{"n":1.50e2,"s":"\u0041"} }"#;

/// A tool with members no typed model knows.
pub(crate) const ODD_TOOL: &str = r#"{"name":"odd","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"vendorHint" : 1.0},"execution":{"taskSupport":"optional"}}"#;

pub(crate) struct Bench {
    listing: Mutex<Arc<ToolListing>>,
    changes: broadcast::Sender<()>,
    listeners: watch::Sender<usize>,
    started: watch::Sender<bool>,
    events: mpsc::UnboundedSender<String>,
    seen: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
}

impl Bench {
    pub(crate) fn new() -> Arc<Self> {
        let (events, seen) = mpsc::unbounded_channel();
        Arc::new(Self {
            listing: Mutex::new(Arc::new(listing(1, &["echo", "hold", "steps"]))),
            changes: broadcast::channel(16).0,
            listeners: watch::channel(0).0,
            started: watch::channel(true).0,
            events,
            seen: tokio::sync::Mutex::new(seen),
        })
    }

    /// Returns `true` if what is behind it has started.
    pub(crate) fn start(&self, started: bool) {
        self.started.send_replace(started);
    }

    /// Changes the list of tools and says so.
    pub(crate) fn change(&self, tools: &[&str]) {
        let generation = self.listing.lock().generation + 1;
        *self.listing.lock() = Arc::new(listing(generation, tools));
        self.changes.send(()).ok();
    }

    /// Waits until `listeners` clients have subscribed to changes.
    pub(crate) async fn listened(&self, listeners: usize) {
        let mut seen = self.listeners.subscribe();
        seen.wait_for(|count| *count >= listeners).await.unwrap();
    }

    /// Waits for the next thing that happened to a call.
    pub(crate) async fn event(&self) -> String {
        self.seen.lock().await.recv().await.unwrap()
    }
}

fn listing(generation: u64, tools: &[&str]) -> ToolListing {
    let tools = tools.iter().map(|name| {
        Bytes::from(format!(
            r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#
        ))
    });
    let mirrored = r#"{"name":"mirror","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}"#;
    let odd = [ODD_TOOL, mirrored].map(|tool| Bytes::from_static(tool.as_bytes()));
    ToolListing::new(generation, tools.chain(odd).collect())
}

/// Says that a call ended, and how: by its own answer or by being dropped.
struct Held(mpsc::UnboundedSender<String>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send("dropped".to_owned()).ok();
    }
}

impl Backend for Bench {
    fn info(&self) -> Introduction {
        Introduction::new("bench", "0.0.1").with_instructions("call echo")
    }

    fn tools(&self) -> Arc<ToolListing> {
        Arc::clone(&self.listing.lock())
    }

    fn starting(&self, _: Asked<'_>) -> Option<BoxFuture<'static, ()>> {
        let mut started = self.started.subscribe();
        (!*self.started.borrow()).then(|| -> BoxFuture<'static, ()> {
            Box::pin(async move {
                let _ = started.wait_for(|started| *started).await;
            })
        })
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let events = self.events.clone();
        Box::pin(async move {
            let refused =
                |kind, delivery, text: &str| Err(ToolError::new(kind, delivery, text.to_owned()));
            let text = match request.name.as_str() {
                "echo" => String::from_utf8_lossy(&request.arguments).into_owned(),
                "odd" => return ToolOutput::from_json(ODD_RESULT).map_err(internal),
                "pretty" => {
                    let lines = "{\n  \"content\": [\r\n  ]\n}";
                    return ToolOutput::from_json(lines).map_err(internal);
                }
                "asks" => {
                    let asks =
                        r#"{"resultType":"input_required","requestState":"s1","inputRequests":{}}"#;
                    return ToolOutput::from_json(asks).map_err(internal);
                }
                "large" => "x".repeat(200_000),
                "answers" => format!("{:?} {:?}", request.input_responses, request.request_state),
                "whoami" => {
                    let caller = &request.caller;
                    format!("{} {}", caller.principal, caller.session.is_some())
                }
                "session" => format!("{:?}", request.caller.session),
                "key" => format!("{:?}", request.idempotency_key),
                "client" => {
                    let inbound = request.inbound.as_ref();
                    let client = inbound.and_then(|inbound| inbound.client_info.as_deref());
                    client.map(ToString::to_string).unwrap_or_default()
                }
                "trace" => traced(&request),
                "hold" => {
                    let _held = Held(events.clone());
                    events.send("started".to_owned()).ok();
                    std::future::pending().await
                }
                "steps" => {
                    for step in 1..=3 {
                        if let Some(report) = &request.progress {
                            let params = format!(r#"{{"progressToken":"up","progress":{step}.0}}"#);
                            report.report(params.as_bytes());
                        }
                        tokio::task::yield_now().await;
                    }
                    "done".to_owned()
                }
                "panics" => panic!("a tool that panics"),
                "capable" => match request.client_capabilities.as_deref() {
                    Some(b"{}") | None => {
                        let text = "the client must be able to sample";
                        return refused(ErrorKind::InvalidCall, Delivery::NotSent, text)
                            .map_err(|error| error.with_code(-32021));
                    }
                    Some(_) => "capable".to_owned(),
                },
                "upstream" => {
                    let data = Bytes::from_static(b"{\"free\": 0.0}");
                    return refused(ErrorKind::ServerFault, Delivery::Answered, "disk full")
                        .map_err(|error| error.with_code(-32050).with_data(data));
                }
                "limited" => {
                    let server = ServerId::new("shop").map_err(internal)?;
                    let wait = std::time::Duration::from_millis(250);
                    return refused(ErrorKind::RateLimited, Delivery::Answered, "too many calls")
                        .map_err(|error| error.with_code(429).with_server(server))
                        .map_err(|error| error.with_retry_after(wait).with_attempts(3));
                }
                name => {
                    let text = format!("no tool {name:?}");
                    return refused(ErrorKind::UnknownTool, Delivery::NotSent, &text);
                }
            };
            Ok(ToolOutput::text(text))
        })
    }

    fn changes(&self) -> BoxStream<'static, ()> {
        let changes = self.changes.subscribe();
        self.listeners.send_modify(|count| *count += 1);
        futures_util::stream::unfold(changes, |mut changes| async move {
            changes.recv().await.ok().map(|()| ((), changes))
        })
        .boxed()
    }
}

fn internal(error: impl std::fmt::Display) -> ToolError {
    ToolError::new(ErrorKind::Internal, Delivery::Answered, error.to_string())
}

/// Returns which trace the call continues with, and which one is linked to it.
fn traced(request: &CallRequest) -> String {
    let Some(trace) = &request.trace else {
        return "none".to_owned();
    };
    let state = trace.state().map(|state| format!(" {state}"));
    let inbound = request.inbound.as_ref();
    let beside = inbound.and_then(|inbound| inbound.beside.as_ref());
    let beside = beside.map(|beside| format!(", beside {beside}"));
    format!(
        "{trace}{}{}",
        state.unwrap_or_default(),
        beside.unwrap_or_default()
    )
}
