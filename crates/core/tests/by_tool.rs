//! What is kept for a tool is found again, and never given to another.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;

use callward_core::infer::Inferred;
use callward_core::resolve::{Hints, Trust, resolve};
use callward_core::{Annotations, ByTool, CallPlan, Profile, ReplicaSetId, Tool, ToolDefinition};

fn tool(name: &str) -> Arc<Tool> {
    let definition = ToolDefinition::from_json(format!(r#"{{"name":"{name}"}}"#)).unwrap();
    let (inferred, declared) = (Inferred::default(), Annotations::default());
    let resolved = resolve(&Hints::new(&inferred, &declared, Trust::Standard));
    let plan = CallPlan::derive(&resolved, &Profile::standard());
    let set = ReplicaSetId::new("web").unwrap();
    Arc::new(Tool::new(set, definition, resolved, plan))
}

#[test]
fn a_tool_keeps_what_is_its_own_and_takes_nothing_of_others() {
    let kept = ByTool::new();
    // more than there are slots: some of them meet
    let tools: Vec<_> = (0..200).map(|n| tool(&format!("t{n}"))).collect();
    let mut looked_up = 0;
    for _ in 0..3 {
        for (own, tool) in tools.iter().enumerate() {
            let look_up = || {
                looked_up += 1;
                own
            };
            assert_eq!(kept.with(tool, look_up, usize::clone), own);
            assert!(kept.ask(tool, |found| *found == own).unwrap_or(true));
        }
    }
    assert!((200..600).contains(&looked_up), "{looked_up}");
}

#[test]
fn a_tool_that_is_gone_makes_room() {
    let kept = ByTool::new();
    let value = Arc::new(());
    for n in 0..1000 {
        let tool = tool(&format!("t{n}"));
        for _ in 0..2 {
            kept.with(&tool, || value.clone(), |_| ());
        }
        assert_eq!(kept.ask(&tool, |_| ()), Some(()), "the slot was free");
    }
    assert!(Arc::strong_count(&value) <= 129);
}
