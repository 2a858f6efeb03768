//! What activity feeds, approval questions and listings tell people about a tool and its calls.
//!
//! Nothing here decides anything: layers look at the plan. These are the plan and the definition
//! put into a number, a word and a line, made when a tool is listed and not on every call.
//!
//! ```
//! use callward_core::{Annotations, CallPlan, Profile, Resolved, Source, Subject};
//! use callward_core::activity::{ActionTemplate, RiskLevel};
//!
//! let action = ActionTemplate::of(&Subject::new("delete_customer"));
//! assert_eq!(action.render(b"{}"), "Delete customer");
//!
//! let hints = Annotations::default().with_destructive(true);
//! let resolved = Resolved::from_single(hints, Source::Declared);
//! let plan = CallPlan::derive(&resolved, &Profile::standard());
//! assert!(RiskLevel::of(&resolved, &plan).get() >= 70);
//! ```

mod action;
mod arguments;
mod phrase;
mod risk;
mod safety;
mod text;
mod value;

use serde::{Serialize, Serializer};

use crate::{CallPlan, Category, Resolved, Subject, Tool};

pub use action::ActionTemplate;
pub use risk::RiskLevel;
pub use safety::{BySafety, SafetyGroup};
pub(crate) use text::line as one_line;

/// What is told to people about a tool: how risky it is, what it is for, and a line for its calls.
///
/// As JSON: `{"riskLevel": 86, "category": "delete", "categoryLabel": "Delete",
/// "action": "Delete customer {customer_id}"}`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Activity {
    /// How risky a call is.
    pub risk: RiskLevel,
    /// What the tool is for.
    pub category: Category,
    /// What a call does, with places for its arguments.
    pub action: ActionTemplate,
}

impl Activity {
    /// Describes a tool by its own hints and plan.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        Self::with_plan(tool, tool.resolved(), tool.plan())
    }

    /// Describes calls of a tool that have other hints and another plan than the tool's own.
    #[must_use]
    pub fn with_plan(tool: &Tool, resolved: &Resolved, plan: &CallPlan) -> Self {
        let subject = Subject::of(tool.definition(), None).with_server(tool.set().as_str());
        Self {
            risk: RiskLevel::of(resolved, plan),
            category: Category::of(resolved),
            action: ActionTemplate::of(&subject),
        }
    }
}

impl Serialize for Activity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Written<'a> {
            risk_level: RiskLevel,
            category: Category,
            category_label: &'static str,
            action: &'a ActionTemplate,
        }
        Written {
            risk_level: self.risk,
            category: self.category,
            category_label: self.category.label(),
            action: &self.action,
        }
        .serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resolve::{Hints, resolve};
    use crate::{
        Annotations, CallPlan, Profile, ReplicaSetId, RuleSet, Source, ToolDefinition, Trust,
    };

    #[test]
    fn a_tool_is_told_in_a_number_a_word_and_a_line() {
        let definition = json!({
            "name": "crm_delete_customer",
            "inputSchema": {
                "properties": {"reason": {"type": "string"}, "customer_id": {"type": "string"}},
                "required": ["customer_id"],
            },
        });
        let definition = ToolDefinition::from_json(definition.to_string()).unwrap();
        let inferred = RuleSet::Standard.infer(&Subject::of(&definition, None));
        let nothing = Annotations::default();
        let resolved = resolve(&Hints::new(&inferred, &nothing, Trust::Standard));
        let plan = CallPlan::derive(&resolved, &Profile::standard());
        let set = ReplicaSetId::new("crm").unwrap();
        let tool = Tool::new(set, definition, resolved, plan);
        let activity = Activity::of(&tool);
        assert_eq!(
            serde_json::to_value(&activity).unwrap(),
            json!({
                "riskLevel": activity.risk.get(),
                "category": "delete",
                "categoryLabel": "Delete",
                "action": "Delete customer {customer_id}",
            })
        );

        let read = Annotations::default().with_read_only(true);
        let read = Resolved::from_single(read, Source::Operator);
        let plan = CallPlan::derive(&read, &Profile::standard());
        let refined = Activity::with_plan(&tool, &read, &plan);
        assert_eq!(refined.category, Category::Read);
        assert!(refined.risk < activity.risk);
        assert_eq!(refined.action, activity.action);
    }
}
