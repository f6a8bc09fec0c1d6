//! [`JsonSchema`], and [`ReducedSchema`]: what a provider could not be told of one.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A JSON Schema. Cloning is cheap.
#[derive(Clone)]
pub struct JsonSchema(Arc<Shared>);

struct Shared {
    schema: Value,
    forms: Mutex<Vec<Made>>,
}

/// The name of a form, and the schema in it.
type Made = (&'static str, Option<Arc<SchemaForm>>);

/// A schema in the form that an API takes.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaForm {
    /// `None`: the schema as it stands.
    pub schema: Option<Value>,
    /// What the form does not say, a sentence for each.
    pub dropped: Vec<String>,
}

/// A schema of which the provider was told less than it says. What it was not told still holds:
/// arguments are checked against the whole schema before a tool runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReducedSchema {
    /// The tool whose arguments it describes; `None`: it describes the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the provider was not told, a sentence for each.
    pub dropped: Vec<String>,
}

impl JsonSchema {
    /// Takes a schema as it is.
    pub fn new(schema: Value) -> Self {
        Self(Arc::new(Shared { schema, forms: Mutex::default() }))
    }

    /// The schema of a type that derives `schemars::JsonSchema`, without references.
    ///
    /// # Errors
    /// When the type's schema is not representable as JSON.
    #[cfg(feature = "schemars")]
    pub fn from_type<T: schemars::JsonSchema>() -> Result<Self, serde_json::Error> {
        let mut settings = schemars::generate::SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        let mut schema = settings.into_generator().into_root_schema_for::<T>();
        // The name of a Rust type means nothing to a model.
        schema.remove("title");
        serde_json::to_value(schema).map(Self::new)
    }

    /// The schema as JSON.
    pub fn as_value(&self) -> &Value {
        &self.0.schema
    }

    /// The schema in a form of a codec's, made once for all clones; `None`: that form cannot say
    /// it.
    #[doc(hidden)]
    pub fn form(
        &self,
        name: &'static str,
        make: impl FnOnce(&Value) -> Option<SchemaForm>,
    ) -> Option<Arc<SchemaForm>> {
        let mut forms = self.0.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, form)) = forms.iter().find(|(known, _)| *known == name) {
            return form.clone();
        }
        let form = make(&self.0.schema).map(Arc::new);
        forms.push((name, form.clone()));
        form
    }
}

impl From<Value> for JsonSchema {
    fn from(schema: Value) -> Self {
        Self::new(schema)
    }
}

impl PartialEq for JsonSchema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.as_value() == other.as_value()
    }
}

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JsonSchema").field(self.as_value()).finish()
    }
}

impl Serialize for JsonSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_is_made_once_for_all_clones() {
        let schema = JsonSchema::new(json!({"minimum": 1}));
        let form = SchemaForm { schema: Some(json!({})), dropped: vec!["minimum".into()] };
        let made = schema.form("a", |_| Some(form.clone()));
        let known = schema.clone().form("a", |_| unreachable!("it is there"));
        assert_eq!(made.as_deref(), Some(&form));
        assert!(Arc::ptr_eq(&made.unwrap(), &known.unwrap()));
        assert_eq!(schema.form("b", |_| None), None);
        assert_eq!(schema.form("b", |_| unreachable!("it is known that there is none")), None);
    }
}
