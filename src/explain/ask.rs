//! Explains calls of a stack.

use std::sync::Arc;

use bytes::Bytes;
use callward_core::refine::Applied;
use callward_core::{ToolCall, ToolError};
use callward_registry::{Catalogue, Entry};

use super::{Candidate, Explanation};
use crate::roster::Known;
use crate::stack::Stack;

impl Stack {
    /// Returns why a tool's calls are treated as they are.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownTool`](crate::ErrorKind::UnknownTool) if no server offers such a tool.
    pub fn explain(&self, tool: &str) -> Result<Explanation, ToolError> {
        let (catalogue, entry) = self.entry(tool)?;
        Ok(self.explanation(&catalogue, &entry, None))
    }

    /// Returns what would happen to a call with these arguments, and why. Nothing is sent.
    /// `arguments` is a raw JSON object; empty stands for `{}`. The call is one of
    /// [`Caller::local`](crate::Caller); of another caller, with a pin or with a budget, see
    /// [`explain_prepared`](Self::explain_prepared).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownTool`](crate::ErrorKind::UnknownTool) if no server offers such a tool.
    pub fn explain_call(
        &self,
        tool: &str,
        arguments: impl Into<Bytes>,
    ) -> Result<Explanation, ToolError> {
        self.explain_prepared(&self.prepare(tool, arguments)?)
    }

    /// Returns what would happen to this very call, and why. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownTool`](crate::ErrorKind::UnknownTool) if no server offers the call's
    /// tool any more.
    pub fn explain_prepared(&self, call: &ToolCall) -> Result<Explanation, ToolError> {
        let name = format!("{}.{}", call.tool().set(), call.tool().name());
        let (catalogue, entry) = self.entry(&name)?;
        Ok(self.explanation(&catalogue, &entry, Some(call.clone())))
    }

    pub(crate) fn entry(&self, tool: &str) -> Result<(Arc<Catalogue>, Arc<Entry>), ToolError> {
        let catalogue = self.catalogue();
        match catalogue.find_any(tool).cloned() {
            Some(entry) => Ok((catalogue, entry)),
            None => Err(self.unknown(tool, &catalogue)),
        }
    }

    fn explanation(
        &self,
        catalogue: &Catalogue,
        entry: &Entry,
        call: Option<ToolCall>,
    ) -> Explanation {
        let tool = entry.tool();
        let (set, name) = (tool.set(), tool.name());
        let of_tool = || ToolCall::new(tool.clone(), "");
        let probe = call.clone().unwrap_or_else(of_tool);
        let candidate = |known: &Known| Candidate {
            server: known.id().clone(),
            weight: *known.weight.lock(),
            categories: known.spec.categories.clone(),
            calls_per_minute: known.spec.calls_per_minute,
            last_error: known.liveness.borrow().last_error.clone(),
            why_not: self.0.router.why_not(known.id(), &probe),
        };
        let roster = self.0.roster.load();
        let offers = |known: &&Known| known.spec.set == *set && catalogue.offers(known.id(), name);
        let offering = roster.all().filter(offers);
        let mut candidates: Vec<_> = offering.map(candidate).collect();
        let plan = call.as_ref().map_or_else(|| &**tool.plan(), ToolCall::plan);
        candidates.sort_by_key(|candidate| candidate.rank(plan));
        // the plan depends on the arguments, so a call without any is not representative
        let is_known = call.is_some() || probe.applied() == Applied::Tool;
        Explanation {
            tool: tool.clone(),
            client_name: entry.client_name().to_owned(),
            candidates,
            #[cfg(feature = "auth")]
            authorization: call.as_ref().and_then(|call| self.ruled(call)),
            #[cfg(not(feature = "auth"))]
            authorization: None,
            #[cfg(feature = "guardrail")]
            guardrails: {
                let guard = &self.0.guardrails;
                let refusal = call.as_ref().and_then(|call| guard.refusal(call));
                let rules = guard.guardrails();
                let rules = rules.map_or_else(Vec::new, |it| it.decisions(&probe));
                rules.into_iter().chain(refusal).collect()
            },
            #[cfg(not(feature = "guardrail"))]
            guardrails: Vec::new(),
            route: is_known.then(|| self.0.router.explain(&probe)),
            preview: call.as_ref().map(|call| self.cache().preview(call)),
            evidence: self.cache().evidence(set, name),
            scopes: self.cache().scope_rules().of(set, name).cloned(),
            settings: self.0.settings.clone(),
            call,
        }
    }
}
