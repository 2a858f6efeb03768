//! The permits of one server and of its tools.

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolName};
use dashmap::DashMap;
use foldhash::fast::RandomState;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::ConcurrencyLimitLayer;
use super::queue::Queue;
use crate::latest_start::latest_start;

/// The permits of one server and of its tools.
#[derive(Debug)]
pub(super) struct Permits {
    layer: ConcurrencyLimitLayer,
    server: Queue,
    tools: DashMap<ToolName, Arc<Queue>, RandomState>,
}

/// The permits that a call in flight holds: of its tool, if that has a limit, and of the server.
pub(super) type Held = (Option<OwnedSemaphorePermit>, OwnedSemaphorePermit);

impl Permits {
    pub(super) fn new(layer: ConcurrencyLimitLayer) -> Self {
        Self {
            server: Queue::new(layer.max_in_flight, layer.max_waiting, layer.shed),
            tools: DashMap::default(),
            layer,
        }
    }

    /// Takes the permits of a call if they are free. If not, returns the tool's if that one was.
    pub(super) fn try_acquire(
        &self,
        tool: &ToolName,
    ) -> Result<Held, Option<OwnedSemaphorePermit>> {
        let tool = match self.of_tool(tool) {
            None => None,
            Some(queue) => Some(queue.try_acquire().ok_or(None)?),
        };
        match self.server.try_acquire() {
            Some(server) => Ok((tool, server)),
            None => Err(tool),
        }
    }

    /// Waits for the permits of a call; the one of its tool may be there already. It comes first: a
    /// call that waits for it must not hold one of the server.
    pub(super) async fn acquire(
        &self,
        call: &ToolCall,
        tool: Option<OwnedSemaphorePermit>,
    ) -> Result<Held, ToolError> {
        let began = Instant::now();
        let name = call.tool().name();
        let tool = match (tool, self.of_tool(name)) {
            (None, Some(queue)) => Some(wait(&queue, Some(name), call).await?),
            (tool, _) => tool,
        };
        let server = wait(&self.server, None, call).await?;
        if let Some(record) = &call.record {
            record.with(|facts| facts.limit_time += began.elapsed());
        }
        Ok((tool, server))
    }

    fn of_tool(&self, tool: &ToolName) -> Option<Arc<Queue>> {
        let layer = &self.layer;
        let limit = layer.tools.get(tool).copied().or(layer.per_tool)?;
        if let Some(queue) = self.tools.get(tool) {
            return Some(queue.value().clone());
        }
        if self.tools.len() >= MAX_TOOLS {
            self.tools.retain(|_, queue| {
                let status = queue.status();
                Arc::strong_count(queue) > 1 || status.in_flight > 0
            });
        }
        let queue = || Arc::new(Queue::new(limit, layer.max_waiting, layer.shed));
        Some(self.tools.entry(tool.clone()).or_insert_with(queue).clone())
    }
}

/// With more tools than this, the limits of those without a call are dropped.
const MAX_TOOLS: usize = 1000;

/// Waits for a permit for as long as the call could still end before its deadline.
async fn wait(
    queue: &Queue,
    tool: Option<&ToolName>,
    call: &ToolCall,
) -> Result<OwnedSemaphorePermit, ToolError> {
    if let Some(permit) = queue.try_acquire() {
        return Ok(permit);
    }
    let arrived = Instant::now();
    let permit = queue.acquire(latest_start(call)).await;
    let status = queue.status();
    let of = match tool {
        None => "the server".to_owned(),
        Some(tool) => format!("tool `{tool}`"),
    };
    let limit = format!("at most {} calls of {of} at once", status.limit);
    let (verdict, reason) = match &permit {
        Ok(_) => (Verdict::Waited, limit),
        Err(refused) => (Verdict::Refused, format!("{limit}: {refused}")),
    };
    let refusal = permit.map_err(|_| {
        let message = format!(
            "{reason}; {} are in flight and {} wait; nothing was sent, try later",
            status.in_flight, status.waiting
        );
        ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, message)
    });
    call.decided(|| Decision::new(Stage::Limit, verdict, reason).waited(arrived.elapsed()));
    refusal
}

/// Reads the limit of one service. Clones read the same limit.
#[derive(Debug, Clone)]
pub struct ConcurrencyHandle(pub(super) Arc<Permits>);

impl ConcurrencyHandle {
    /// Returns the current state.
    #[must_use]
    pub fn status(&self) -> ConcurrencyStatus {
        let tools = self.0.tools.iter();
        ConcurrencyStatus {
            server: self.0.server.status(),
            tools: tools
                .map(|entry| (entry.key().clone(), entry.value().status()))
                .collect(),
        }
    }
}

/// The permits of one server and of its tools at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConcurrencyStatus {
    /// The server's.
    pub server: PermitStatus,
    /// Those of each tool that has a limit of its own and was called.
    pub tools: HashMap<ToolName, PermitStatus>,
}

/// Permits at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermitStatus {
    /// How many calls may be in flight.
    pub limit: usize,
    /// How many calls are.
    pub in_flight: usize,
    /// How many calls wait.
    pub waiting: usize,
    /// How many calls may wait.
    pub max_waiting: usize,
    /// How many calls were refused because the queue was full.
    pub refused: u64,
    /// How many calls were refused because their deadline came too close.
    pub expired: u64,
}
