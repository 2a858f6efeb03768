//! The methods of MCP whose requests servers answer.

crate::words! {
    /// A method of MCP whose requests a server answers.
    ///
    /// A call of any of them passes the same layers: each server that answers a method has a
    /// [`Tool`](crate::Tool) for it, with the name of the method. All but `tools/call` read only.
    /// Those about a task are calls of the tool that made it:
    /// [`Tool::of_task`](crate::Tool::of_task).
    #[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
    Method {
        /// Calls a tool.
        CallTool = "tools/call",
        /// Lists the prompts.
        ListPrompts = "prompts/list",
        /// Fills in a prompt.
        GetPrompt = "prompts/get",
        /// Lists the resources.
        ListResources = "resources/list",
        /// Lists the templates that URIs of resources are made from.
        ListTemplates = "resources/templates/list",
        /// Reads a resource.
        ReadResource = "resources/read",
        /// Completes an argument of a prompt or of a template.
        Complete = "completion/complete",
        /// Asks for the state of a task.
        GetTask = "tasks/get",
        /// Gives a task the input that it asks for.
        UpdateTask = "tasks/update",
        /// Asks a task to end early.
        CancelTask = "tasks/cancel",
    } default CallTool
}

crate::words! {
    /// A list that servers offer and announce changes of.
    #[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
    List {
        /// The tools.
        Tools = "tools",
        /// The prompts.
        Prompts = "prompts",
        /// The resources, and the templates of resources.
        Resources = "resources",
    }
}

impl List {
    /// Returns the list whose change a notification of this method announces.
    #[must_use]
    pub fn changed_by(notification: &str) -> Option<Self> {
        let list = notification.strip_prefix("notifications/")?;
        Self::by_name(list.strip_suffix("/list_changed")?)
    }
}

impl Method {
    /// Returns the list of what the method is about; `None` for completions and tasks.
    #[must_use]
    pub const fn list(self) -> Option<List> {
        match self {
            Self::CallTool => Some(List::Tools),
            Self::ListPrompts | Self::GetPrompt => Some(List::Prompts),
            Self::ListResources | Self::ListTemplates | Self::ReadResource => Some(List::Resources),
            Self::Complete | Self::GetTask | Self::UpdateTask | Self::CancelTask => None,
        }
    }

    /// Returns `true` if the method is about a task, of the extension
    /// `io.modelcontextprotocol/tasks`.
    #[must_use]
    pub const fn is_of_task(self) -> bool {
        matches!(self, Self::GetTask | Self::UpdateTask | Self::CancelTask)
    }

    /// Returns the parameter that names what a request is about, if there is one. Over HTTP, the
    /// header `Mcp-Name` repeats it ([SEP-2243]).
    ///
    /// [SEP-2243]: https://modelcontextprotocol.io/community/seps/2243-http-standardization
    #[must_use]
    pub const fn named_by(self) -> Option<&'static str> {
        match self {
            Self::CallTool | Self::GetPrompt => Some("name"),
            Self::ReadResource => Some("uri"),
            Self::GetTask | Self::UpdateTask | Self::CancelTask => Some("taskId"),
            _ => None,
        }
    }

    /// Returns the member that each result has; `None` for calls of tools, whose results have
    /// `content` or `structuredContent`, and for what is only acknowledged.
    #[must_use]
    pub const fn result_member(self) -> Option<&'static str> {
        match self {
            Self::CallTool | Self::UpdateTask | Self::CancelTask => None,
            Self::ListPrompts => Some("prompts"),
            Self::GetPrompt => Some("messages"),
            Self::ListResources => Some("resources"),
            Self::ListTemplates => Some("resourceTemplates"),
            Self::ReadResource => Some("contents"),
            Self::Complete => Some("completion"),
            Self::GetTask => Some("status"),
        }
    }

    /// Returns `true` if a request asks for a list, in pages.
    #[must_use]
    pub const fn is_list(self) -> bool {
        matches!(
            self,
            Self::ListPrompts | Self::ListResources | Self::ListTemplates
        )
    }

    /// Returns `true` if a modern result has to say how long clients may keep it.
    #[must_use]
    pub const fn has_hints(self) -> bool {
        self.is_list() || matches!(self, Self::ReadResource)
    }

    /// Returns `true` if results may be kept, by the rules for tools that read. The pages of a list
    /// belong together, so none is kept.
    #[must_use]
    pub const fn is_cacheable(self) -> bool {
        matches!(self, Self::CallTool | Self::ReadResource)
    }
}
