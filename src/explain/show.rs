//! Explanations as text.

use std::fmt;

use callward_core::refine::Applied;
use callward_core::{Category, Effect};

use super::Explanation;
use crate::scopes;

/// Writes the trail, the rules over the arguments, the servers, the plan and the hints.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.client_name)?;
        write!(f, "{}", self.trail())?;
        rules(self, f)?;
        servers(self, f)?;
        writeln!(f, "\n{}", self.plan())?;
        writeln!(f, "category {}", Category::of(self.resolved()))?;
        hints(self, f)
    }
}

/// Lists the rules of the tool, if it has any, and what each makes of a call.
fn rules(of: &Explanation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let refinements = &of.tool.refinements;
    if refinements.rules().is_empty() {
        return Ok(());
    }
    let head = "rules over the arguments, the first that matches counts:";
    writeln!(f, "\n{head}")?;
    for (index, rule) in refinements.rules().iter().enumerate() {
        let (when, does) = (rule.rule.when(), does(rule.plan.effect));
        write!(f, "  {}. where {when}: the call {does}", index + 1)?;
        match (of.applied(), &of.call) {
            (Applied::Rule(matched), _) if matched == index => write!(f, "  <- this call")?,
            (Applied::Rule(matched), _) if matched < index => {}
            (_, Some(call)) => {
                if let Some(unmet) = refinements.unmet(index, call.arguments()) {
                    let how = match unmet.is_certain {
                        true => "does not hold here",
                        false => "is not certain here",
                    };
                    write!(f, "  ({} {}: {how})", unmet.path, unmet.condition)?;
                }
            }
            (_, None) => {}
        }
        writeln!(f)?;
    }
    let mark = match (&of.call, of.applied()) {
        (Some(_), Applied::Tool) => "  <- this call",
        _ => "",
    };
    writeln!(f, "  else: the call {}{mark}", does(of.tool.plan().effect))
}

const fn does(effect: Effect) -> &'static str {
    match effect {
        Effect::ReadOnly => "only reads",
        Effect::Idempotent => "changes something, and a second equal call changes nothing more",
        Effect::Mutating => "changes something each time it runs",
        Effect::Destructive => "may destroy or overwrite something",
    }
}

/// Lists the servers that offer the tool, those that are asked first at the head.
fn servers(of: &Explanation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "\nservers:")?;
    for candidate in &of.candidates {
        write!(f, "  {} (weight {})", candidate.server, candidate.weight)?;
        if !candidate.may_take(of.plan()) {
            write!(f, ", never: it is too light")?;
        }
        if candidate.is_preferred(of.plan()) {
            write!(f, ", preferred")?;
        }
        if let Some(trouble) = candidate.trouble() {
            write!(f, ", {trouble}")?;
        }
        let server = &candidate.server;
        let mark = match &of.route {
            Some(route) if route.chosen.as_ref() == Some(server) => "  <- chosen now",
            Some(route) if route.alternates.contains(server) => {
                "  <- asked if the chosen one refuses"
            }
            _ => "",
        };
        writeln!(f, "{mark}")?;
    }
    Ok(())
}

fn hints(of: &Explanation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "\nhints, each with its source and reason:")?;
    let resolved = of.resolved();
    let values = serde_json::to_value(&resolved.annotations).unwrap_or_default();
    for entry in &resolved.provenance {
        let (field, value) = (entry.field.as_str(), &values[entry.field.as_str()]);
        writeln!(f, "  {field} = {value}: {}, {}", entry.source, entry.reason)?;
    }
    if resolved.provenance.is_empty() {
        writeln!(f, "  none")?;
    }
    let idle = of.scopes.as_ref().map(|said| scopes::idle(&of.tool, said));
    for warning in idle.into_iter().flatten() {
        writeln!(f, "warning: {warning}")?;
    }
    for warning in &resolved.warnings {
        writeln!(f, "warning: {warning}")?;
    }
    Ok(())
}
