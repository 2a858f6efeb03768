//! What tools are searched for.

use callward_core::{Annotations, Category, Domain, InvalidValue, SafetyLevel};

/// What tools to find, and in which order. The default finds all, as clients see them.
///
/// ```
/// use callward_registry::Query;
///
/// let mut query = Query::default();
/// query.set("text", "open issues")?;
/// query.set("readOnlyHint", "true")?;
/// query.set("limit", "10")?;
/// assert_eq!(query.limit, Some(10));
/// assert!(query.set("safety", "high").is_err());
/// # Ok::<(), callward_core::InvalidValue>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Query {
    /// A part of the name that clients see, in any case.
    pub name: Option<String>,
    /// Words, any of which is in the name, title, description or arguments.
    pub text: Option<String>,
    /// Servers that list the tool, or sets that it belongs to; any of them.
    pub servers: Vec<String>,
    /// Domains of the tool; any of them.
    pub domains: Vec<Domain>,
    /// Categories of the tool; any of them.
    pub categories: Vec<Category>,
    /// Tags of the tool; any of them.
    pub tags: Vec<String>,
    /// Effective hints: all that have a value here must have the same.
    pub hints: Annotations,
    /// How dangerous calls are.
    pub safety: Option<SafetyLevel>,
    /// Whether calls need confirmation, by the tool's own plan.
    pub confirm: Option<bool>,
    /// Whether a server that lists the tool is up.
    pub available: Option<bool>,
    /// The order. Default: by relevance with a name or text, else as clients see the tools.
    pub sort: Option<Sort>,
    /// Reverses the order, except of tools without the figure that sorts them: they are last.
    pub descending: bool,
    /// The most tools to return. Default: all.
    pub limit: Option<usize>,
    /// How many tools to skip.
    pub offset: usize,
}

callward_core::words! {
    /// What orders the tools that were found. Equal ones are in the order clients see.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Sort {
        /// Those that match best first.
        Relevance = "relevance",
        /// By name.
        Name = "name",
        /// By the number of calls.
        Calls = "calls",
        /// By the share of calls that did not fail.
        SuccessRate = "success-rate",
        /// By the mean duration of calls that ran.
        Duration = "duration",
    }
}

impl Query {
    /// Sets a field by its name, as in the query of a URL; lists grow. `category` takes a word of
    /// [`Domain`] or [`Category`], and a hint is a field of its own.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if there is no such field, or the value is not one of its values.
    pub fn set(&mut self, field: &str, value: &str) -> Result<(), InvalidValue> {
        let invalid = |expected: &str| {
            InvalidValue::new(format!("{field} is `{value}`: expected {expected}"))
        };
        let number = || value.parse().map_err(|_| invalid("a whole number"));
        let flag = || value.parse().map_err(|_| invalid("true or false"));
        match field {
            "name" => self.name = Some(value.to_owned()),
            "text" => self.text = Some(value.to_owned()),
            "server" => self.servers.push(value.to_owned()),
            "category" => match (Domain::by_name(value), Category::by_name(value)) {
                (Some(domain), _) => self.domains.push(domain),
                (_, Some(category)) => self.categories.push(category),
                _ => {
                    let domains = Domain::ALL.iter().map(|domain| domain.as_str());
                    let categories = Category::ALL.iter().map(|category| category.as_str());
                    return Err(invalid(&one_of(domains.chain(categories))));
                }
            },
            "tag" => self.tags.push(value.to_owned()),
            "safety" => {
                let words = SafetyLevel::ALL.iter().map(|level| level.as_str());
                let level = SafetyLevel::by_name(value).ok_or_else(|| invalid(&one_of(words)));
                self.safety = Some(level?);
            }
            "confirm" => self.confirm = Some(flag()?),
            "available" => self.available = Some(flag()?),
            "sort" => {
                let words = Sort::ALL.iter().map(|sort| sort.as_str());
                self.sort = Some(Sort::by_name(value).ok_or_else(|| invalid(&one_of(words)))?);
            }
            "desc" => self.descending = flag()?,
            "limit" => self.limit = Some(number()?),
            "offset" => self.offset = number()?,
            hint => {
                let hint = Annotations::from_assignment(&format!("{hint}={value}"))?;
                self.hints = self.hints.merge(&hint);
            }
        }
        Ok(())
    }
}

fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    format!("one of {}", words.collect::<Vec<_>>().join(", "))
}
