//! A small shop: its orders, and the number of executions of each tool.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use callward::{Delivery, ErrorKind, ToolError};
use parking_lot::Mutex;
use scopeguard::guard;
use serde::Serialize;
use serde_json::{Value, json};

/// JSON-RPC's code for a fault of the server.
const INTERNAL_ERROR: i64 = -32603;

/// The shop's state. Both servers of the embedded sample share one, as replicas of a real service
/// would share a database.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    data: Mutex<Data>,
    runs: Mutex<BTreeMap<&'static str, Run>>,
}

#[derive(Debug)]
struct Data {
    orders: BTreeMap<u64, Order>,
    /// What has failed once already: flaky tools fail only the first time.
    failed_once: HashSet<String>,
}

/// One order.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Order {
    id: u64,
    item: &'static str,
    pub(crate) status: String,
    pub(crate) notes: Vec<String>,
    pub(crate) charged_cents: u64,
}

/// How often a tool ran, how often it runs now, and how often it ran at once at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Run {
    pub(crate) executions: u64,
    pub(crate) running: u64,
    pub(crate) peak: u64,
}

impl Default for Data {
    fn default() -> Self {
        let order = |(id, item): (u64, &'static str)| {
            let order = Order {
                id,
                item,
                status: "paid".into(),
                notes: Vec::new(),
                charged_cents: 0,
            };
            (id, order)
        };
        let items = ["lamp", "chair", "desk", "clock", "shelf"];
        Self {
            orders: (1..).zip(items).map(order).collect(),
            failed_once: HashSet::new(),
        }
    }
}

impl Orders {
    /// Counts an execution, until the guard is dropped as a running one, also when the call is
    /// cancelled.
    pub(crate) fn start(self: &Arc<Self>, tool: &'static str) -> impl Send + use<> {
        let mut runs = self.runs.lock();
        let run = runs.entry(tool).or_default();
        run.executions += 1;
        run.running += 1;
        run.peak = run.peak.max(run.running);
        guard(self.clone(), move |orders| {
            if let Some(run) = orders.runs.lock().get_mut(tool) {
                run.running = run.running.saturating_sub(1);
            }
        })
    }

    /// Returns the counts by tool.
    pub(crate) fn runs(&self) -> BTreeMap<&'static str, Run> {
        self.runs.lock().clone()
    }

    /// Returns how many executions there were in all.
    pub(crate) fn executions(&self) -> u64 {
        self.runs.lock().values().map(|run| run.executions).sum()
    }

    /// Returns all orders, or those of one status.
    pub(crate) fn list(&self, status: Option<&str>) -> Value {
        let data = self.data.lock();
        let wanted = |order: &&Order| status.is_none_or(|status| order.status == status);
        json!({ "orders": data.orders.values().filter(wanted).collect::<Vec<_>>() })
    }

    /// Counts orders by status.
    pub(crate) fn report(&self, region: &str) -> Value {
        let mut by_status = BTreeMap::<String, u64>::new();
        for order in self.data.lock().orders.values() {
            *by_status.entry(order.status.clone()).or_default() += 1;
        }
        json!({ "region": region, "orders": by_status })
    }

    /// Deletes an order for good.
    pub(crate) fn delete(&self, id: u64) -> Result<Value, String> {
        let removed = self
            .data
            .lock()
            .orders
            .remove(&id)
            .ok_or_else(|| no_order(id))?;
        Ok(json!({ "deleted": removed.id }))
    }

    /// Changes an order, and returns it.
    pub(crate) fn change(&self, id: u64, change: impl FnOnce(&mut Order)) -> Result<Value, String> {
        let mut data = self.data.lock();
        let order = data.orders.get_mut(&id).ok_or_else(|| no_order(id))?;
        change(order);
        Ok(json!(order))
    }

    /// Fails the first time for each `what`.
    pub(crate) fn fail_once(&self, what: String, message: &'static str) -> Result<(), ToolError> {
        if !self.data.lock().failed_once.insert(what) {
            return Ok(());
        }
        let fault = ToolError::new(ErrorKind::ServerFault, Delivery::Answered, message);
        Err(fault.with_code(INTERNAL_ERROR))
    }
}

fn no_order(id: u64) -> String {
    format!("no order {id}")
}
