//! One rule: whom and what it concerns, and what it decides.

use callward_core::refine::Applied;
use callward_core::{
    AnyOf, Approver, Caller, Effect, Glob, SafetyLevel, SecurityLevel, Tool, ToolGlob, When, words,
};
use serde::{Deserialize, Serialize};

words! {
    /// What a rule decides, the least strict first.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Then {
        /// The call is made.
        Allow = "allow",
        /// A person must approve the call.
        Ask = "ask",
        /// The call is refused, as if there were no such tool.
        Deny = "deny",
    } default Allow
}

/// One rule: it concerns a call if all its parts do. A part that is a list concerns a call if one
/// of its elements does; an absent part concerns every call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// A name for audit records. Default: the number of the rule.
    pub name: Option<String>,
    /// The principals, as their whole texts or as the names of their credentials.
    #[serde(default)]
    pub principal: AnyOf<Glob>,
    /// The roles, of which the caller has one.
    #[serde(default)]
    pub role: AnyOf<String>,
    /// The scopes, of which the credential states one.
    #[serde(default)]
    pub scope: AnyOf<String>,
    /// The issuers: the principal's text before its `#`.
    #[serde(default)]
    pub issuer: AnyOf<Glob>,
    /// The tools, by replica set and by the server's own name.
    #[serde(default)]
    pub tool: AnyOf<ToolGlob>,
    /// The effects.
    #[serde(default)]
    pub effect: AnyOf<Effect>,
    /// The safety levels.
    #[serde(default)]
    pub safety: AnyOf<SafetyLevel>,
    /// The security levels; that of a tool that states none is `public`.
    #[serde(default)]
    pub security: AnyOf<SecurityLevel>,
    /// The tags.
    #[serde(default)]
    pub tag: AnyOf<Box<str>>,
    /// Conditions over the arguments.
    pub when: Option<When>,
    /// What the rule decides.
    pub then: Then,
    /// Of a rule that asks: who approves. Default: the one that approves other calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Approver>,
    /// Of a rule that asks: the roles, of which an operator that decides must have one.
    #[serde(default)]
    pub approvers: AnyOf<String>,
}

impl Rule {
    /// Makes a rule that concerns every call.
    #[must_use]
    pub fn new(then: Then) -> Self {
        Self {
            then,
            ..Self::default()
        }
    }

    /// Makes the rules that let only callers with one of these roles call, and see, tools; without
    /// roles no caller.
    ///
    /// They decide every call of these tools: rules after them have no effect on it.
    ///
    /// ```
    /// use callward_auth::rules::{AnyOf, Policy, Rule, Then, ToolGlob};
    ///
    /// let roles = AnyOf::one("accountant".to_owned()).or("auditor".to_owned());
    /// let rules = Rule::role_access(&ToolGlob::new("billing.*")?, roles);
    /// let policy = Policy::new(rules.into(), Then::Allow);
    /// # Ok::<(), callward_core::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn role_access(tools: &ToolGlob, roles: AnyOf<String>) -> [Self; 2] {
        let mut rules = [Then::Allow, Then::Deny].map(Self::new);
        for rule in &mut rules {
            rule.tool = AnyOf::one(tools.clone());
        }
        // a rule without roles concerns all callers
        if roles.elements().is_empty() {
            rules[0].then = Then::Deny;
        }
        rules[0].role = roles;
        rules
    }

    /// Returns `true` if the rule concerns calls of the tool that get this one of its plans, by
    /// everything but their arguments.
    pub(super) fn concerns(&self, caller: &Caller, tool: &Tool, applied: Applied) -> bool {
        let (principal, credential) = (caller.principal.as_str(), &caller.credential);
        let is_principal = |glob: &Glob| {
            glob.fits(principal)
                || credential
                    .name
                    .as_deref()
                    .is_some_and(|name| glob.fits(name))
        };
        let issuer = principal.split_once('#').map(|(issuer, _)| issuer);
        let has_scope = |scope: &String| {
            let scopes = credential.scopes.as_ref();
            scopes.is_some_and(|scopes| scopes.contains(scope))
        };
        self.fits(tool, applied)
            && self.principal.admits(is_principal)
            && self.role.admits(|role| credential.roles.contains(role))
            && self.scope.admits(has_scope)
            && self
                .issuer
                .admits(|glob| issuer.is_some_and(|issuer| glob.fits(issuer)))
    }

    /// Returns `true` if the rule concerns such calls of some caller, with some arguments.
    pub(super) fn fits(&self, tool: &Tool, applied: Applied) -> bool {
        let plan = tool.plan_applied(applied);
        let hints = &tool.resolved_applied(applied).annotations;
        let security = hints.security_level.unwrap_or(SecurityLevel::Public);
        // a rule that allows a restricted tool has to name a role
        let is_careless =
            self.then != Then::Deny && self.role.elements().is_empty() && plan.limits.restricted;
        !is_careless
            && self.tool.admits(|glob| glob.fits(tool))
            && self.effect.admits(|effect| *effect == plan.effect)
            && self
                .safety
                .admits(|level| *level == plan.effect.safety_level())
            && self.security.admits(|level| *level == security)
            && self.tag.admits(|tag| plan.route.tags.contains(tag))
    }

    /// Returns `true` if whom it concerns and with which arguments is not limited.
    pub(super) fn is_for_all(&self) -> bool {
        let of_all = self.principal.admits(|_| false) && self.issuer.admits(|_| false);
        of_all && self.role.admits(|_| false) && self.scope.admits(|_| false) && self.when.is_none()
    }
}
