//! The built-in tools in a [`ToolRegistry`].

use toolloop_tools::Builtin;

use super::registry::ToolRegistry;

impl<Ctx> ToolRegistry<Ctx> {
    /// Adds the built-in tools as they were set up.
    pub fn register_builtin(&mut self, tools: &Builtin) -> &mut Self {
        for tool in tools.tools() {
            self.register_shared(tool);
        }
        self
    }

    /// Adds the built-in tools, working in the current folder.
    ///
    /// # Panics
    /// When the current folder cannot be opened; [`register_builtin`](Self::register_builtin) takes
    /// any other.
    ///
    /// ```
    /// use toolloop::ToolRegistry;
    ///
    /// let registry: ToolRegistry = ToolRegistry::new().register_all_builtin();
    /// assert!(registry.contains("edit_file") && registry.contains("bash"));
    /// ```
    #[must_use]
    pub fn register_all_builtin(mut self) -> Self {
        let tools = Builtin::in_folder(".").unwrap_or_else(|error| {
            panic!("the current folder cannot be opened for the built-in tools: {error}")
        });
        self.register_builtin(&tools);
        self
    }
}
