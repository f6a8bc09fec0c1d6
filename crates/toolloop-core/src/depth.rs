//! [`LoopDepth`]: how deep loops are nested in one another's tools.

/// A context that knows how deep in nested loops it is.
///
/// A loop hands its tools the context one level deeper, and refuses to open at
/// `ToolLoopConfig::max_depth`.
pub trait LoopDepth: Clone + Send + Sync {
    /// 0 outside any loop.
    fn loop_depth(&self) -> u32;

    /// The same context at another depth.
    #[must_use]
    fn with_depth(&self, depth: u32) -> Self;
}

/// Knows no depth: always 0.
impl LoopDepth for () {
    fn loop_depth(&self) -> u32 {
        0
    }

    fn with_depth(&self, _: u32) -> Self {}
}

/// A ready context: any state, with a depth.
///
/// ```
/// use toolloop_core::{LoopContext, LoopDepth};
///
/// let outer = LoopContext::new("state");
/// let inner = outer.with_depth(1);
/// assert_eq!((inner.state, inner.loop_depth()), ("state", 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoopContext<T: Clone + Send + Sync = ()> {
    /// What the tools share.
    pub state: T,
    depth: u32,
}

impl<T: Clone + Send + Sync> LoopContext<T> {
    /// A context at depth 0.
    pub fn new(state: T) -> Self {
        Self { state, depth: 0 }
    }
}

impl LoopContext<()> {
    /// A context without state, which still counts depth.
    pub fn empty() -> Self {
        Self::new(())
    }
}

impl<T: Clone + Send + Sync> LoopDepth for LoopContext<T> {
    fn loop_depth(&self) -> u32 {
        self.depth
    }

    fn with_depth(&self, depth: u32) -> Self {
        Self { depth, ..self.clone() }
    }
}
