//! The places of one server and of its tools, and what is known of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolName, ToolOutput};
use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::adaptive::{Adaptive, Sample, Signal};
use super::gate::{Entry, Gate, Place};
use super::layer::ConcurrencyLimitLayer;
use crate::line::latest_start;

/// The places of one server and of its tools.
#[derive(Debug)]
pub(super) struct Site {
    layer: ConcurrencyLimitLayer,
    places: Arc<Gate>,
    tools: DashMap<ToolName, Arc<Gate>>,
    adaptive: Option<Mutex<Adaptive>>,
}

/// The places a call has, until dropped.
#[derive(Debug)]
pub(super) struct Places {
    _tool: Option<Place>,
    _server: Place,
}

impl Site {
    pub(super) fn new(layer: ConcurrencyLimitLayer) -> Self {
        let adaptive = layer
            .adaptive
            .map(|config| Mutex::new(Adaptive::new(config, layer.max_in_flight)));
        let limit = adaptive
            .as_ref()
            .map_or(layer.max_in_flight, |adaptive| adaptive.lock().limit());
        Self {
            places: Arc::new(Gate::new(limit, layer.max_waiting, layer.shed)),
            tools: DashMap::new(),
            adaptive,
            layer,
        }
    }

    /// Takes the places of a call if they are free; if not, returns the tool's if that was.
    pub(super) fn enter_at_once(&self, call: &ToolCall) -> Result<Places, Option<Place>> {
        let tool = match self.of_tool(call.tool().name()) {
            None => None,
            Some(gate) => Some(gate.enter_at_once().map_err(|_| None)?),
        };
        match self.places.clone().enter_at_once() {
            Ok(server) => Ok(Places {
                _tool: tool,
                _server: server,
            }),
            Err(_) => Err(tool),
        }
    }

    /// Takes the places of a call, and waits for them if need be. A place of its tool comes first:
    /// who waits for it must not hold one of the server.
    pub(super) async fn enter(
        self: Arc<Self>,
        call: ToolCall,
        tool: Option<Place>,
    ) -> Result<(ToolCall, Places), ToolError> {
        let began = Instant::now();
        let name = call.tool().name();
        let tool = match (tool, self.of_tool(name)) {
            (None, Some(gate)) => Some(wait(&gate, Some(name), &call).await?),
            (tool, _) => tool,
        };
        let server = wait(&self.places, None, &call).await?;
        let places = Places {
            _tool: tool,
            _server: server,
        };
        if let Some(record) = call.record() {
            record.spent().add_limits(began.elapsed());
        }
        Ok((call, places))
    }

    /// Says when a call begins to run, if anybody wants to know.
    pub(super) fn begins(&self) -> Option<Instant> {
        self.adaptive.as_ref().map(|_| Instant::now())
    }

    /// Learns from the end of a call.
    pub(super) fn ended(
        &self,
        tool: &ToolName,
        began: Instant,
        result: &Result<ToolOutput, ToolError>,
    ) {
        let Some(adaptive) = &self.adaptive else {
            return;
        };
        let now = Instant::now();
        let sample = Sample {
            latency: now.saturating_duration_since(began),
            signal: Signal::of(result),
            in_flight: self.places.in_flight(),
        };
        let limit = adaptive.lock().observe(tool, sample, now);
        if limit != self.places.limit() {
            self.places.set_limit(limit);
        }
    }

    fn of_tool(&self, tool: &ToolName) -> Option<Arc<Gate>> {
        let layer = &self.layer;
        let limit = layer.tools.get(tool).copied().or(layer.per_tool)?;
        if let Some(gate) = self.tools.get(tool) {
            return Some(gate.value().clone());
        }
        if self.tools.len() >= MOST_TOOLS {
            self.tools.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        let gate = self
            .tools
            .entry(tool.clone())
            .or_insert_with(|| Arc::new(Gate::new(limit, layer.max_waiting, layer.shed)))
            .clone();
        Some(gate)
    }
}

/// With more tools than this, the places of those that are not called are dropped.
const MOST_TOOLS: usize = 1000;

/// Waits for a place, for as long as the call would end before its deadline if it got one.
async fn wait(
    gate: &Arc<Gate>,
    tool: Option<&ToolName>,
    call: &ToolCall,
) -> Result<Place, ToolError> {
    let entry = std::future::poll_fn(|cx| std::task::Poll::Ready(gate.enter(cx.waker()))).await;
    let arrived = Instant::now();
    let waiter = match entry {
        Entry::Free(place) => return Ok(place),
        Entry::InLine(waiter) => waiter,
        Entry::Full => {
            tell(gate, tool, call, Some(Refused::LineFull), Duration::ZERO);
            return Err(refusal(gate, tool, Refused::LineFull));
        }
    };
    let place = match latest_start(call) {
        None => waiter.await.ok_or(Refused::ByNewer),
        Some(latest) => match timeout_at(latest, waiter).await {
            Ok(place) => place.ok_or(Refused::ByNewer),
            Err(_) => {
                gate.count_expired();
                Err(Refused::TimeOver)
            }
        },
    };
    tell(
        gate,
        tool,
        call,
        place.as_ref().err().copied(),
        arrived.elapsed(),
    );
    place.map_err(|why| refusal(gate, tool, why))
}

/// Writes down that a call waited for a place, or got none.
fn tell(
    gate: &Gate,
    tool: Option<&ToolName>,
    call: &ToolCall,
    refused: Option<Refused>,
    waited: Duration,
) {
    call.decided(|| {
        let (limit, of) = (gate.limit(), if tool.is_some() { "tool" } else { "server" });
        let (verdict, why) = match refused {
            None => (Verdict::Waited, ""),
            Some(Refused::ByNewer) => (Verdict::Refused, ": a newer call took its place in line"),
            Some(Refused::LineFull) => (Verdict::Refused, ": the line is full"),
            Some(Refused::TimeOver) => (Verdict::Refused, ": its deadline came too close"),
        };
        let reason = format!("at most {limit} calls of the {of} at once{why}");
        Decision::new(Stage::Limit, verdict, reason).waited(waited)
    });
}

/// Why a call got no place.
#[derive(Debug, Clone, Copy)]
enum Refused {
    ByNewer,
    LineFull,
    TimeOver,
}

#[cold]
fn refusal(gate: &Gate, tool: Option<&ToolName>, why: Refused) -> ToolError {
    let limit = gate.limit();
    let what = match tool {
        None => "the server".to_owned(),
        Some(tool) => format!("tool `{tool}`"),
    };
    let message = match why {
        Refused::LineFull => format!(
            "{} calls of {what} run and {} wait, which is the limit; nothing was sent, try later",
            gate.in_flight(),
            gate.waiting(),
        ),
        Refused::ByNewer => format!(
            "a newer call took this one's place in line: {} calls of {what} run and {} wait, which \
             is the limit; nothing was sent, try later",
            gate.in_flight(),
            gate.max_waiting(),
        ),
        Refused::TimeOver => format!(
            "the call waited for one of the {limit} places of {what} until it could not be answered \
             before its deadline any more; nothing was sent"
        ),
    };
    ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, message)
}

/// The places of one service, to look at. Clones are the same places.
#[derive(Debug, Clone)]
pub struct ConcurrencyHandle(pub(super) Arc<Site>);

impl ConcurrencyHandle {
    /// Returns what is known now.
    #[must_use]
    pub fn status(&self) -> ConcurrencyStatus {
        let tools = self.0.tools.iter();
        ConcurrencyStatus {
            server: PlacesStatus::of(&self.0.places),
            tools: tools
                .map(|entry| (entry.key().clone(), PlacesStatus::of(entry.value())))
                .collect(),
        }
    }
}

/// The places of one server, as they are now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConcurrencyStatus {
    /// Those of the server.
    pub server: PlacesStatus,
    /// Those of its tools that have some of their own and were called.
    pub tools: HashMap<ToolName, PlacesStatus>,
}

/// Places, as they are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacesStatus {
    /// How many there are: the limit in force, which moves if it is adaptive.
    pub limit: usize,
    /// How many calls have one.
    pub in_flight: usize,
    /// How many calls wait for one.
    pub waiting: usize,
    /// How many may wait.
    pub max_waiting: usize,
    /// How many calls were refused because the line was full.
    pub refused: u64,
    /// How many calls were refused because their time was over while they waited.
    pub expired: u64,
}

impl PlacesStatus {
    fn of(gate: &Gate) -> Self {
        Self {
            limit: gate.limit(),
            in_flight: gate.in_flight(),
            waiting: gate.waiting(),
            max_waiting: gate.max_waiting(),
            refused: gate.refused(),
            expired: gate.expired(),
        }
    }
}
