//! What is told about tools and calls: one shape for listings, tables, JSON and the HTTP interface.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as Unknown, StrDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tollgate::core::activity::Activity;
use tollgate::core::resolve::Provenance;
use tollgate::core::{Annotations, CacheRule, Category, ConfirmRule, Field, RepeatRule};
use tollgate::registry::Entry;
use tollgate::{
    CallPlan, CallRecord, Caller, Effect, Explanation, Stack, Tool, ToolError, ToolOutput,
};

use crate::config::show_duration;

/// What is made of one tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolView {
    /// The name clients call it by.
    pub(crate) name: String,
    /// The replica set that offers it.
    pub(crate) set: String,
    #[serde(flatten)]
    pub(crate) plan: PlanView,
    /// Who decided the effect.
    pub(crate) source: String,
    /// Why, in a sentence.
    pub(crate) reason: String,
}

/// A plan in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlanView {
    pub(crate) effect: String,
    pub(crate) safety: String,
    pub(crate) cache: String,
    pub(crate) repeat: String,
    pub(crate) confirm: bool,
    /// How risky a call is, from 0 to 100.
    #[serde(rename = "riskLevel")]
    pub(crate) risk: u8,
    /// What the tool is for.
    pub(crate) category: Category,
    /// The same, for people.
    #[serde(rename = "categoryLabel")]
    pub(crate) category_label: String,
    /// A line for each call, with places for its arguments.
    pub(crate) action: String,
    /// The effective hints.
    pub(crate) annotations: Annotations,
    /// Who decided each hint.
    pub(crate) sources: BTreeMap<String, String>,
}

impl PlanView {
    pub(crate) fn of(tool: &Tool) -> Self {
        let plan = tool.plan();
        let source = |entry: &Provenance| (entry.field.to_string(), entry.source.to_string());
        let Activity {
            risk,
            category,
            action,
            ..
        } = Activity::of(tool);
        Self {
            effect: plan.effect.to_string(),
            safety: plan.safety_level().to_string(),
            cache: cache_words(plan.cache),
            repeat: repeat_word(plan.repeat).to_owned(),
            confirm: plan.confirm == ConfirmRule::Ask,
            risk: risk.get(),
            category,
            category_label: category.label().to_owned(),
            action: action.to_string(),
            annotations: tool.resolved().annotations().clone(),
            sources: tool
                .resolved()
                .all_provenance()
                .iter()
                .map(source)
                .collect(),
        }
    }

    /// Returns the effect. One that another version of the gateway has a word for, and this one has
    /// not, is taken for the worst.
    pub(crate) fn effect(&self) -> Effect {
        let word: StrDeserializer<'_, Unknown> = self.effect.as_str().into_deserializer();
        Effect::deserialize(word).unwrap_or(Effect::Destructive)
    }
}

impl ToolView {
    pub(crate) fn of(name: &str, tool: &Tool) -> Self {
        Self {
            name: name.to_owned(),
            set: tool.set().to_string(),
            plan: PlanView::of(tool),
            source: verdict_source(tool),
            reason: tool.plan().reason.to_string(),
        }
    }

    /// Describes all tools of a stack, in the order clients see them.
    pub(crate) fn all(stack: &Stack) -> Vec<Self> {
        let catalogue = stack.catalogue();
        let view = |entry: &Arc<Entry>| Self::of(entry.client_name(), entry.tool());
        catalogue.entries().iter().map(view).collect()
    }
}

/// Says how long results are kept, in a few words.
fn cache_words(rule: CacheRule) -> String {
    match rule {
        CacheRule::Store { ttl } => show_duration(ttl),
        CacheRule::KeepOwn { ttl } => format!("{} (own)", show_duration(ttl)),
        CacheRule::Bypass | CacheRule::Invalidate => "never".into(),
        other => other.to_string(),
    }
}

fn repeat_word(rule: RepeatRule) -> &'static str {
    match rule {
        RepeatRule::Safe => "yes",
        RepeatRule::OnlyUnsent => "if unsent",
        _ => "never",
    }
}

/// Names the source of the hint that decided the effect.
fn verdict_source(tool: &Tool) -> String {
    let fields: &[Field] = match tool.plan().effect {
        Effect::ReadOnly => &[Field::ReadOnly],
        Effect::Destructive => &[Field::Destructive],
        Effect::Idempotent => &[Field::Idempotent],
        Effect::Mutating => &[Field::ReadOnly, Field::Idempotent, Field::Destructive],
    };
    let decided = fields
        .iter()
        .find_map(|field| tool.resolved().provenance(*field));
    decided.map_or_else(|| "default".into(), |entry| entry.source.to_string())
}

/// Why a tool's calls are treated as they are, as prose and as data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExplainView {
    #[serde(flatten)]
    pub(crate) tool: ToolView,
    /// Each hint with its source and reason.
    pub(crate) hints: Vec<HintView>,
    /// All of it for people.
    pub(crate) text: String,
}

/// One effective hint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HintView {
    pub(crate) hint: String,
    pub(crate) source: String,
    pub(crate) reason: String,
}

impl ExplainView {
    pub(crate) fn of(explanation: &Explanation) -> Self {
        let tool = explanation.tool();
        let hint = |entry: &Provenance| HintView {
            hint: entry.field.to_string(),
            source: entry.source.to_string(),
            reason: entry.reason.to_string(),
        };
        Self {
            tool: ToolView::of(explanation.client_name(), tool),
            hints: tool.resolved().all_provenance().iter().map(hint).collect(),
            text: format!("{}{}", explanation, ask_note(explanation.plan())),
        }
    }
}

/// What a plan that asks for confirmation means today.
fn ask_note(plan: &CallPlan) -> &'static str {
    if plan.confirm == ConfirmRule::Ask {
        "\nThe plan asks for confirmation. This runtime has no approval layer yet: until it has one, \
         the client is left to ask a person before it calls. The plan is in the `_meta` of the list \
         of tools, for clients that read it.\n"
    } else {
        ""
    }
}

/// What became of one call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallView {
    pub(crate) tool: String,
    pub(crate) effect: String,
    /// The server that was chosen last; none for an answer from the cache.
    pub(crate) server: Option<String>,
    pub(crate) cache: String,
    pub(crate) attempts: u32,
    pub(crate) took_us: u64,
    /// The raw result, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Box<RawValue>>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorView>,
}

/// Why a call failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ErrorView {
    pub(crate) kind: String,
    pub(crate) delivery: String,
    pub(crate) message: String,
}

impl ErrorView {
    pub(crate) fn of(error: &ToolError) -> Self {
        Self {
            kind: error.kind().to_string(),
            delivery: error.delivery().to_string(),
            message: error.to_string(),
        }
    }
}

impl CallView {
    /// Makes a call and writes down what became of it.
    ///
    /// # Errors
    ///
    /// [`ToolError`] if there is no such tool. A call that fails is told in the view.
    pub(crate) async fn make(
        stack: &Stack,
        tool: &str,
        arguments: impl Into<Bytes>,
        caller: Arc<Caller>,
    ) -> Result<Self, ToolError> {
        let record = Arc::new(CallRecord::new());
        let call = stack
            .prepare(tool, arguments)?
            .with_record(record.clone())
            .with_caller(caller);
        let effect = call.plan().effect.to_string();
        let started = Instant::now();
        let answer = stack.run(call).await;
        let took = started.elapsed();
        let (result, error) = match answer {
            Ok(output) => (raw(&output), None),
            Err(error) => (None, Some(ErrorView::of(&error))),
        };
        Ok(Self {
            tool: tool.to_owned(),
            effect,
            server: record.server().map(|(server, _)| server.to_string()),
            cache: record.cache().as_str().to_owned(),
            attempts: record.started_attempts(),
            took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            result,
            error,
        })
    }

    /// Returns how long the call took.
    pub(crate) fn took(&self) -> Duration {
        Duration::from_micros(self.took_us)
    }

    /// Returns the result, if the call was answered with one.
    pub(crate) fn output(&self) -> Option<ToolOutput> {
        let raw = self.result.as_ref()?.get();
        ToolOutput::from_json(Bytes::copy_from_slice(raw.as_bytes())).ok()
    }
}

fn raw(output: &ToolOutput) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(output.body()).ok()?;
    RawValue::from_string(text.to_owned()).ok()
}
