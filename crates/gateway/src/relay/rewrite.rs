//! The names and URIs in results, as clients see them.

use bytes::Bytes;
use callward::ToolOutput;
use callward::core::Method;
use callward::registry::{Path, rewrite, uri};
use callward_mcp::client::Rewrite;
use memchr::memmem;

/// Where the results of a method have names or URIs.
const fn places(method: Method) -> &'static [Path<'static>] {
    match method {
        Method::CallTool => &[
            &["content", "*", "uri"],
            &["content", "*", "resource", "uri"],
        ],
        Method::ListPrompts => &[&["prompts", "*", "name"]],
        Method::GetPrompt => &[
            &["messages", "*", "content", "*", "uri"],
            &["messages", "*", "content", "*", "resource", "uri"],
        ],
        Method::ListResources => &[&["resources", "*", "uri"]],
        Method::ListTemplates => &[&["resourceTemplates", "*", "uriTemplate"]],
        Method::ReadResource => &[&["contents", "*", "uri"]],
        Method::GetTask => &[
            &["result", "content", "*", "uri"],
            &["result", "content", "*", "resource", "uri"],
        ],
        Method::Complete | Method::UpdateTask | Method::CancelTask => &[],
    }
}

/// Names and URIs in the results of a server, as clients see them.
#[derive(Debug)]
pub(crate) struct Prefixed(pub(crate) String);

impl Rewrite for Prefixed {
    fn result(&self, method: Method, output: ToolOutput, has_resources: bool) -> ToolOutput {
        let body = output.body();
        let is_of_tool = matches!(method, Method::CallTool | Method::GetTask);
        if is_of_tool && !(has_resources && may_have_uris(body)) {
            return output;
        }
        let seen = result(method, body, &self.0);
        let seen = seen.and_then(|body| ToolOutput::from_json(body).ok());
        seen.unwrap_or(output)
    }
}

/// Returns `false` if a result of a tool has no URIs: nearly all lack the word, and escapes that
/// could spell it.
fn may_have_uris(body: &[u8]) -> bool {
    let has = |word: &[u8]| memmem::find(body, word).is_some();
    has(b"uri\"") || has(br"\u00")
}

/// Returns a result with the names and URIs that clients see; `None` if it has none to change. All
/// other bytes stay as they are.
fn result(method: Method, body: &Bytes, prefix: &str) -> Option<Bytes> {
    let text = std::str::from_utf8(body).ok()?;
    let seen = rewrite(text, places(method), |place, own| match place {
        "name" => format!("{prefix}__{own}"),
        _ => uri::with_prefix(own, prefix),
    });
    seen.map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_has_its_names_and_uris_rewritten() {
        for (method, own, seen) in [
            (
                Method::CallTool,
                r#"{"content":[{"type":"resource_link","uri":"a:b"},{"resource":{"uri":"c:d"}}]}"#,
                r##"{"content":[{"type":"resource_link","uri":"a:b#p"},{"resource":{"uri":"c:d#p"}}]}"##,
            ),
            (
                Method::CallTool,
                r#"{"content":[{"ur\u0069":"a:b#q"}]}"#,
                r##"{"content":[{"ur\u0069":"a:b#q~p"}]}"##,
            ),
            (
                Method::CallTool,
                r#"{"structuredContent":{"uri":"a:b"}}"#,
                "",
            ),
            (
                Method::GetPrompt,
                r#"{"messages":[{"content":{"resource":{"uri":"a:b#c"}}}]}"#,
                r##"{"messages":[{"content":{"resource":{"uri":"a:b#c~p"}}}]}"##,
            ),
            (
                Method::ListPrompts,
                r#"{"prompts":[{"name":"a"},{"name":7}]}"#,
                r#"{"prompts":[{"name":"p__a"},{"name":7}]}"#,
            ),
            (
                Method::ListTemplates,
                r#"{"resourceTemplates":[{"uriTemplate":"a:{b}"}]}"#,
                r##"{"resourceTemplates":[{"uriTemplate":"a:{b}#p"}]}"##,
            ),
        ] {
            let rewritten = result(method, &Bytes::from(own), "p");
            let expected = (!seen.is_empty()).then_some(seen);
            assert_eq!(rewritten.as_deref(), expected.map(str::as_bytes), "{own}");
        }
    }
}
