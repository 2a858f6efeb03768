//! The guardrails of a stack.

use callward_guardrail::{ArgumentGuardLayer, Guardrails, ResultGuardLayer};

use crate::builder::StackBuilder;

impl StackBuilder {
    /// Checks the arguments and the results of calls by rules. Default: nothing is checked.
    ///
    /// The cache keeps results that have passed; it is in this process, as the rules are, so no
    /// result outlives the rules that it passed.
    pub fn guardrails(mut self, guardrails: Guardrails) -> Self {
        self.argument_guard = ArgumentGuardLayer::new(guardrails.clone());
        self.result_guard = ResultGuardLayer::new(guardrails);
        self
    }
}
