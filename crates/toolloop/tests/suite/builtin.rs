//! The built-in tools in a loop, and long results behind a handle.

use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::json;
use toolloop::ToolRegistry;
use toolloop::tool::{DiskCacher, ToolLoopConfig};
use toolloop::tools::{ReadResult, ResultStore};

use super::support::{Sim, call, reply, says};

#[test]
fn all_of_them_come_with_one_call() {
    let registry: ToolRegistry = ToolRegistry::new().register_all_builtin();
    let names: Vec<_> = registry.get_tools_for_llm().into_iter().map(|tool| tool.name).collect();
    for name in ["list_dir", "glob", "grep", "read_file", "write_file", "edit_file", "bash"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name == "fetch_url"), "the network is asked for by name");
}

#[tokio::test(start_paused = true)]
async fn a_long_result_is_stored_and_the_model_opens_what_it_needs() {
    let long: String = (0..3000).map(|n| format!("line {n}\n")).collect();
    let store = ResultStore::temporary();
    let mut sim = Sim::new([
        reply([call("a", "read", json!({"say": long}))]),
        reply([call("b", "read_result", json!({"handle": "r1", "start": 9000, "length": 16000}))]),
        says("Done."),
    ]);
    sim.tools.register(ReadResult::new(store.clone()));
    let cacher = DiskCacher::new(store.clone());
    let told = sim
        .config(ToolLoopConfig { result_cacher: Some(Arc::new(cacher)), ..Default::default() })
        .run()
        .await;
    let result = |at: usize| match &told.result().messages[at].content[0] {
        toolloop::ContentBlock::ToolResult(result) => result.content.text.clone(),
        other => panic!("{other:?}"),
    };
    let middle = result(2).lines().filter(|line| line.starts_with("[...")).collect::<String>();
    assert_snapshot!(middle, @r#"[... 24809 bytes left out; read_result shows them: {"handle":"r1","start":2041} ...]"#);
    assert!(result(2).starts_with("line 0\n") && result(2).ends_with("line 2999\n"));
    // What was opened by its handle is not put behind another one.
    let opened = result(4);
    assert!(opened.starts_with(&long[9000..25000]), "{opened}");
    assert!(!store.path().join("r2").exists());
}
