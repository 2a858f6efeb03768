//! Tools that run in this process: async closures with a schema.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;

use callward_core::{
    Annotations, BoxFuture, Delivery, ErrorKind, InvalidDefinition, InvalidName, ServerId,
    ToolCall, ToolDefinition, ToolError, ToolName, ToolOutput, ToolServer, ToolService,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt;

/// JSON-RPC's code for arguments that do not fit.
const INVALID_PARAMS: i64 = -32602;

/// The definition of a tool.
///
/// ```
/// use serde_json::json;
/// use callward::{Annotations, ToolSpec};
///
/// let spec = ToolSpec::new("delete_order")
///     .description("Deletes an order for good")
///     .schema(json!({"type": "object", "properties": {"id": {"type": "integer"}}}))
///     .annotations(Annotations::default().with_destructive(true));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ToolSpec(Value);

impl ToolSpec {
    /// Starts a tool that takes any object and has no hints.
    pub fn new(name: impl Into<String>) -> Self {
        Self(json!({"name": name.into(), "inputSchema": {"type": "object"}}))
    }

    /// Sets what the tool does, for models and for inference.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.0["description"] = text.into().into();
        self
    }

    /// Sets the JSON Schema of the arguments. It is listed only: the closure's argument type is
    /// checked.
    pub fn schema(mut self, schema: Value) -> Self {
        self.0["inputSchema"] = schema;
        self
    }

    /// Declares hints. Absent ones are inferred.
    pub fn annotations(mut self, hints: Annotations) -> Self {
        // a struct of plain fields always has a JSON form
        self.0["annotations"] = serde_json::to_value(hints).unwrap_or_default();
        self
    }
}

/// An answer of a tool's closure.
pub trait IntoToolOutput {
    /// Makes the tool result.
    ///
    /// # Errors
    ///
    /// A text for the model, if the answer cannot be written as JSON.
    fn into_tool_output(self) -> Result<ToolOutput, String>;
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, String> {
        Ok(self)
    }
}

impl IntoToolOutput for String {
    fn into_tool_output(self) -> Result<ToolOutput, String> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoToolOutput for &str {
    fn into_tool_output(self) -> Result<ToolOutput, String> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoToolOutput for Value {
    fn into_tool_output(self) -> Result<ToolOutput, String> {
        ToolOutput::json(&self).map_err(|error| error.to_string())
    }
}

/// Answers with any serialisable value, as structured content.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a wrapper that is meant to be built in place"
)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> Result<ToolOutput, String> {
        ToolOutput::json(&self.0).map_err(|error| error.to_string())
    }
}

type Answer = BoxFuture<'static, Result<ToolOutput, ToolError>>;

type Run = Arc<dyn Fn(ToolCall) -> Answer + Send + Sync>;

/// A server of tools that run in this process. Cloning shares the tools.
#[derive(Clone)]
pub struct Tools {
    id: ServerId,
    tools: Arc<BTreeMap<ToolName, (ToolDefinition, Run)>>,
}

impl Tools {
    /// Starts a server without tools.
    ///
    /// # Errors
    ///
    /// [`InvalidName`] if `id` cannot name a server.
    pub fn new(id: impl AsRef<str>) -> Result<Self, InvalidName> {
        Ok(Self {
            id: ServerId::new(id)?,
            tools: Arc::default(),
        })
    }

    /// Adds a tool that runs a closure. A tool of the same name is replaced.
    ///
    /// Arguments that do not fit the closure's type are the caller's fault and never reach it. What
    /// the closure returns as an error is the tool's own failure: an answer with `isError`, its
    /// text for the model. Dropping the call drops the closure's future.
    ///
    /// # Errors
    ///
    /// [`InvalidDefinition`] if the name or the hints cannot be used.
    pub fn tool<A, F, Fut, T, E>(self, spec: ToolSpec, run: F) -> Result<Self, InvalidDefinition>
    where
        A: DeserializeOwned,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: IntoToolOutput,
        E: fmt::Display,
    {
        self.tool_in_call(spec, move |_, arguments| run(arguments))
    }

    /// Adds a tool as [`tool`](Self::tool) does, whose closure also gets the call: its caller, its
    /// client, and what that declares. So a tool can ask the person at the client.
    ///
    /// ```
    /// # #[cfg(feature = "approval")] mod example {
    /// use callward::approval::questions::{QuestionError, Questions};
    /// use callward::{ToolCall, ToolSpec, Tools};
    /// use serde_json::Value;
    ///
    /// # pub fn tools() -> Result<Tools, Box<dyn std::error::Error>> {
    /// let questions = Questions::default();
    /// let archive = move |call: ToolCall, _: Value| {
    ///     let questions = questions.clone();
    ///     async move {
    ///         let done = questions.to(&call).confirm("Archive all orders?").await?;
    ///         Ok::<_, QuestionError>(if done { "archived" } else { "left as they are" })
    ///     }
    /// };
    /// let tools = Tools::new("orders")?.tool_in_call(ToolSpec::new("archive_orders"), archive)?;
    /// # Ok(tools)
    /// # }
    /// # }
    /// # #[cfg(feature = "approval")]
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use std::sync::Arc;
    /// # use callward::core::*;
    /// # struct Agrees;
    /// # impl ClientPeer for Agrees {
    /// #     fn ask(
    /// #         &self,
    /// #         _: ClientMethod,
    /// #         _: bytes::Bytes,
    /// #     ) -> BoxFuture<'static, Result<bytes::Bytes, ClientRefusal>> {
    /// #         let answer = r#"{"action": "accept", "content": {"answer": true}}"#;
    /// #         Box::pin(async move { Ok(answer.into()) })
    /// #     }
    /// # }
    /// # let stack = callward::Stack::builder().server(example::tools()?).build().await?;
    /// # let mut call = stack.prepare("orders.archive_orders", "{}")?;
    /// # let context = call.context_mut();
    /// # context.client = Some(CallClient::new(Arc::new(Agrees), false));
    /// # context.capabilities = ClientCapabilities::parse(br#"{"elicitation": {}}"#);
    /// # assert_eq!(stack.run(call).await?.to_text(), "archived");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidDefinition`] if the name or the hints cannot be used.
    pub fn tool_in_call<A, F, Fut, T, E>(
        self,
        spec: ToolSpec,
        run: F,
    ) -> Result<Self, InvalidDefinition>
    where
        A: DeserializeOwned,
        F: Fn(ToolCall, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: IntoToolOutput,
        E: fmt::Display,
    {
        let answer = move |call: ToolCall| -> Answer {
            let arguments = serde_json::from_slice::<A>(call.arguments());
            let running = arguments.map(|arguments| run(call, arguments));
            Box::pin(async move {
                let running = running.map_err(|error| {
                    let text = format!("the arguments do not fit the tool: {error}");
                    ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, text)
                        .with_code(INVALID_PARAMS)
                })?;
                let answer = running.await.map_err(|failure| failure.to_string());
                let output = answer.and_then(IntoToolOutput::into_tool_output);
                Ok(output.unwrap_or_else(ToolOutput::error_text))
            })
        };
        self.insert(spec, Arc::new(answer))
    }

    /// Adds a tool that is answered by a Tower service, which gets the whole call: its caller, its
    /// deadline, and its idempotency key.
    ///
    /// ```
    /// use axum::http::Request;
    /// use callward::{ToolCall, ToolOutput, ToolSpec, Tools};
    ///
    /// let pay = tower::service_fn(|call: ToolCall| async move {
    ///     let mut request = Request::post("https://pay.example/charges");
    ///     // the same for each attempt of this call, so the customer pays once
    ///     if let Some(key) = call.idempotency_key() {
    ///         request = request.header("Idempotency-Key", key.to_string());
    ///     }
    ///     // ... send it with any client
    /// #   let key = request.headers_ref().and_then(|all| all.get("Idempotency-Key"));
    /// #   Ok(ToolOutput::text(key.map_or("", |key| key.to_str().unwrap_or_default())))
    /// });
    /// let tools = Tools::new("pay")?.service(ToolSpec::new("create_charge"), pay)?;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let stack = callward::Stack::builder().server(tools).build().await?;
    /// # let one = stack.call("pay.create_charge", ()).await?;
    /// # let two = stack.call("pay.create_charge", ()).await?;
    /// # assert_eq!(one.to_text().len(), 36);
    /// # assert_ne!(one.to_text(), two.to_text());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidDefinition`] if the name or the hints cannot be used.
    pub fn service<S>(self, spec: ToolSpec, service: S) -> Result<Self, InvalidDefinition>
    where
        S: ToolService + Sync,
    {
        let answer = move |call| -> Answer { Box::pin(service.clone().oneshot(call)) };
        self.insert(spec, Arc::new(answer))
    }

    fn insert(mut self, ToolSpec(listed): ToolSpec, run: Run) -> Result<Self, InvalidDefinition> {
        let definition = ToolDefinition::from_json(listed.to_string())?;
        Arc::make_mut(&mut self.tools).insert(definition.name.clone(), (definition, run));
        Ok(self)
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools")
            .field("id", &self.id)
            .field("tools", &self.tools.keys())
            .finish()
    }
}

impl ToolServer for Tools {
    fn id(&self) -> &ServerId {
        &self.id
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        let tools = self.tools.values();
        let tools = tools.map(|(definition, _)| definition.clone()).collect();
        Box::pin(ready(Ok(tools)))
    }

    fn call(&self, call: ToolCall) -> Answer {
        match self.tools.get(call.tool().name()) {
            Some((_, run)) => run(call),
            None => {
                let text = format!("no tool {:?} here", call.tool().name().as_str());
                let error = ToolError::new(ErrorKind::UnknownTool, Delivery::Answered, text);
                Box::pin(ready(Err(error.with_code(INVALID_PARAMS))))
            }
        }
    }
}
