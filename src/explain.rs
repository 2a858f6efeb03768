//! Why a tool's calls are treated as they are.

use std::fmt;
use std::sync::Arc;

use tollgate_core::activity::Activity;
use tollgate_core::{CallPlan, ServerId, Tool};
use tollgate_registry::Entry;

/// Why a tool's calls are treated as they are: the plan, and who decided each hint.
#[derive(Debug, Clone)]
pub struct Explanation {
    entry: Arc<Entry>,
    servers: Vec<(ServerId, u32)>,
}

impl Explanation {
    pub(crate) fn new(entry: Arc<Entry>, servers: Vec<(ServerId, u32)>) -> Self {
        Self { entry, servers }
    }

    /// Returns the tool.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        self.entry.tool()
    }

    /// Returns the name clients call it by.
    #[must_use]
    pub fn client_name(&self) -> &str {
        self.entry.client_name()
    }

    /// Returns the plan.
    #[must_use]
    pub fn plan(&self) -> &CallPlan {
        self.tool().plan()
    }

    /// Returns the servers that offer the tool, each with its weight.
    #[must_use]
    pub fn servers(&self) -> &[(ServerId, u32)] {
        &self.servers
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = self.tool();
        writeln!(
            f,
            "{}  (tool `{}` of `{}`)",
            self.client_name(),
            tool.name(),
            tool.set()
        )?;
        writeln!(f)?;
        writeln!(f, "{}", tool.plan())?;
        let activity = Activity::of(tool);
        writeln!(
            f,
            "risk     {} of 100, category `{}`",
            activity.risk, activity.category
        )?;
        writeln!(f, "action   {}", activity.action)?;
        write!(f, "servers ")?;
        for (server, weight) in &self.servers {
            let may = tool
                .plan()
                .route
                .min_weight
                .is_none_or(|least| *weight >= least);
            write!(
                f,
                " {server} (weight {weight}{})",
                if may { "" } else { ", never" }
            )?;
        }
        writeln!(f)?;
        writeln!(f)?;
        writeln!(f, "hints, each with its source and reason:")?;
        let values = serde_json::to_value(tool.resolved().annotations()).unwrap_or_default();
        for entry in tool.resolved().all_provenance() {
            let field = entry.field.as_str();
            writeln!(
                f,
                "  {field} = {}: {}, {}",
                values[field], entry.source, entry.reason
            )?;
        }
        if tool.resolved().all_provenance().is_empty() {
            writeln!(f, "  none")?;
        }
        for warning in tool.resolved().warnings() {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}
