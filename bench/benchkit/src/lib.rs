//! What every client of the harness shares: the command line, the one tool, the counters, the
//! measured section and the result line. A client supplies only "run one conversation", see
//! [`main`].

mod counters;
mod options;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

pub use counters::{Conv, count_tool_call};
pub use options::Options;

/// The system prompt of every conversation.
pub const SYSTEM: &str = "You are a calculator. Use the add tool.";
/// The user's message of every conversation.
pub const PROMPT: &str = "Add the numbers, step by step.";
/// Name of the one tool.
pub const TOOL_NAME: &str = "add";
/// Description of the one tool.
pub const TOOL_DESCRIPTION: &str = "Add two integers.";
/// More iterations than any scenario asks for.
pub const MAX_ITERATIONS: u32 = 1000;

/// JSON Schema of the tool's arguments.
pub fn tool_schema() -> serde_json::Value {
    serde_json::json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer"},
            "note": {"type": "string"}
        },
        "required": ["a", "b"]
    })
}

/// Arguments of the tool.
#[derive(serde::Deserialize)]
pub struct AddArgs {
    a: i64,
    b: i64,
}

/// The one tool: adds, and pads its answer to `--result-bytes`.
pub fn add(args: &AddArgs) -> String {
    const PADDING: &str = "result data, ";
    count_tool_call();
    let mut answer = (args.a + args.b).to_string();
    let want = counters::result_bytes();
    if want > answer.len() + 1 {
        answer.push(' ');
        while answer.len() < want {
            answer.push_str(&PADDING[..(want - answer.len()).min(PADDING.len())]);
        }
    }
    answer
}

/// Runs `--convs` conversations on `--conc` workers, measures, and prints one JSON line.
///
/// `setup` builds the client once; `conversation` runs one conversation to its end and gives an
/// error as text. Everything runs on one thread.
pub fn main<C, Fut>(
    setup: impl FnOnce(&Options) -> C,
    conversation: impl Fn(Arc<C>, Conv) -> Fut + Send + Copy + 'static,
) where
    C: Send + Sync + 'static,
    Fut: Future<Output = Result<(), String>> + Send + 'static,
{
    let options = Options::from_args();
    // Whatever fails in here makes the figures worthless, so it ends the process.
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let line = rt.block_on(async move {
        let client = Arc::new(setup(&options));
        counters::start(&options);
        for _ in 0..options.warmup {
            conversation(client.clone(), Conv::start()).await.expect("warm-up");
        }
        let base_rss_kb = counters::memory_kb("VmRSS:");

        let next = Arc::new(AtomicU64::new(0));
        counters::start(&options);
        let (cpu0, start) = (counters::cpu(), Instant::now());
        let workers: Vec<_> = (0..options.conc.min(options.convs))
            .map(|_| {
                let (client, next, convs) = (client.clone(), next.clone(), options.convs);
                tokio::spawn(async move {
                    while next.fetch_add(1, Relaxed) < convs {
                        conversation(client.clone(), Conv::start()).await?;
                    }
                    Ok::<(), String>(())
                })
            })
            .collect();
        for worker in workers {
            worker.await.expect("no worker panics or is cut off").expect("conversation");
        }
        let mut result = counters::report();
        result["wall_s"] = start.elapsed().as_secs_f64().into();
        result["cpu_s"] = (counters::cpu() - cpu0).into();
        result["base_rss_kb"] = base_rss_kb.into();
        result["peak_rss_kb"] = counters::memory_kb("VmHWM:").into();
        result
    });
    println!("{line}");
}
