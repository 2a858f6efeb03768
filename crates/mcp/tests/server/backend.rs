//! A backend whose tools show what reached them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_core::{
    BoxFuture, BoxStream, Caller, Delivery, ErrorKind, LimitReached, List, Method, ServerId,
    ToolError, ToolOutput,
};
use callward_mcp::server::{Asked, Backend, CallRequest, Introduction, ToolListing};
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde_json::json;
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
    events: mpsc::UnboundedSender<&'static str>,
    seen: tokio::sync::Mutex<mpsc::UnboundedReceiver<&'static str>>,
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

    pub(crate) fn start(&self, started: bool) {
        self.started.send_replace(started);
    }

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

    pub(crate) async fn event(&self) -> &'static str {
        self.seen.lock().await.recv().await.unwrap()
    }
}

fn listing(generation: u64, tools: &[&str]) -> ToolListing {
    let tools = tools.iter().map(|name| {
        let tool = json!({"name": name, "inputSchema": {"type": "object"}});
        Bytes::from(tool.to_string())
    });
    let mirrored = r#"{"name":"mirror","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}"#;
    let odd = [ODD_TOOL, mirrored].map(|tool| Bytes::from_static(tool.as_bytes()));
    ToolListing::new(generation, tools.chain(odd).collect())
}

struct Held(mpsc::UnboundedSender<&'static str>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send("dropped").ok();
    }
}

fn seen(request: &CallRequest) -> String {
    let inbound = request.inbound.as_ref();
    let client = inbound.and_then(|inbound| inbound.client_info.as_deref());
    let text = |raw: &Option<Bytes>| {
        raw.as_deref()
            .map(String::from_utf8_lossy)
            .map(String::from)
    };
    json!({
        "principal": request.caller.principal.to_string(),
        "session": request.caller.session.as_ref().map(ToString::to_string),
        "key": request.idempotency_key.as_ref().map(ToString::to_string),
        "client": client.map(ToString::to_string),
        "answers": text(&request.input_responses),
        "state": text(&request.request_state),
    })
    .to_string()
}

const ASKING_RESULT: &str =
    r#"{"resultType":"input_required","requestState":"s1","inputRequests":{}}"#;
const PRETTY_RESULT: &str = "{\n  \"content\": [\r\n  ]\n}";

async fn answer(
    request: CallRequest,
    events: mpsc::UnboundedSender<&'static str>,
) -> Result<ToolOutput, ToolError> {
    let raw = |raw: &'static str| Ok(ToolOutput::from_json(raw).unwrap());
    let text = match request.name.as_str() {
        "echo" => String::from_utf8_lossy(&request.arguments).into_owned(),
        "odd" => return raw(ODD_RESULT),
        "pretty" => return raw(PRETTY_RESULT),
        "report" => {
            if let Some(report) = &request.progress {
                report.report(br#"{"progressToken":"up","progress":1}"#);
            }
            return raw(PRETTY_RESULT);
        }
        "asks" => return raw(ASKING_RESULT),
        "large" => "x".repeat(200_000),
        "seen" => seen(&request),
        "hold" => {
            let _held = Held(events.clone());
            events.send("started").ok();
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
        "capable" => match request.capabilities.is_empty() {
            true => {
                let text = "the client must be able to sample";
                let error = ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text);
                return Err(error.with_code(-32021));
            }
            false => "capable".to_owned(),
        },
        "upstream" => {
            let error = ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "disk full");
            let data = Bytes::from_static(b"{\"free\": 0.0}");
            return Err(error.with_code(-32050).with_data(data));
        }
        "limited" => {
            let error = ToolError::new(ErrorKind::RateLimited, Delivery::Answered, "too many");
            let error = error.with_server(ServerId::new("shop").unwrap());
            let error = error.with_retry_after(Duration::from_millis(250));
            let mut error = error.with_code(429);
            error.attempts = 3;
            return Err(error);
        }
        "scoped" => {
            let (kind, text) = (ErrorKind::InsufficientScope, "the call needs more scopes");
            let mut error = ToolError::new(kind, Delivery::NotSent, text);
            error.scopes = vec!["tools:write", "tools:destroy"];
            return Err(error);
        }
        "exceeds" => return Err(exceeded()),
        name => {
            let (kind, text) = (ErrorKind::UnknownTool, format!("no tool {name:?}"));
            return Err(ToolError::new(kind, Delivery::NotSent, text));
        }
    };
    Ok(ToolOutput::text(text))
}

/// What a principal gets that has reached its limit.
fn exceeded() -> ToolError {
    let error = ToolError::new(ErrorKind::RateLimited, Delivery::NotSent, "too often");
    let mut error = error.with_retry_after(Duration::from_millis(1_001));
    error.limit = Some(LimitReached {
        name: "calls_per_minute",
        max: 9,
        reset: Some(Duration::from_secs(60)),
    });
    error
}

impl Backend for Bench {
    fn info(&self, _: &Arc<Caller>) -> Introduction {
        let mut info = Introduction::new("bench", "0.0.1");
        info.instructions = Some("call echo".to_owned());
        info
    }

    fn tools(&self, _: &Arc<Caller>) -> Arc<ToolListing> {
        Arc::clone(&self.listing.lock())
    }

    fn admit_list(&self, caller: &Arc<Caller>) -> Result<(), ToolError> {
        match caller.principal.as_str() {
            "eve" => Err(exceeded()),
            _ => Ok(()),
        }
    }

    fn starting(&self, _: Asked<'_>) -> Option<BoxFuture<'static, ()>> {
        let mut started = self.started.subscribe();
        (!*self.started.borrow()).then(|| -> BoxFuture<'static, ()> {
            Box::pin(async move {
                let _ = started.wait_for(|started| *started).await;
            })
        })
    }

    fn answers(&self, _: &Caller, method: Method) -> bool {
        *self.started.borrow() && method == Method::GetPrompt
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(answer(request, self.events.clone()))
    }

    fn changes(&self, _: &Caller) -> BoxStream<'static, List> {
        let changes = self.changes.subscribe();
        self.listeners.send_modify(|count| *count += 1);
        futures_util::stream::unfold(changes, |mut changes| async move {
            changes.recv().await.ok().map(|()| (List::Tools, changes))
        })
        .boxed()
    }
}
