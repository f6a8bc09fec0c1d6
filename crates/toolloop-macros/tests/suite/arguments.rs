//! What the model may pass.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolloop_core::ToolHandler;
use toolloop_macros::tool;

use super::support::run;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

/// Forecasts the weather.
#[tool(crate = "crate")]
fn forecast(
    /// City name
    #[schemars(length(min = 1))]
    city: String,
    /// How many days
    days: Option<u32>,
    /// Of the temperature
    #[serde(default = "celsius")]
    unit: Unit,
    /// A name that means something to Rust
    r#type: Option<String>,
) -> String {
    format!("{city} {days:?} {unit:?} {:?}", r#type)
}

fn celsius() -> Unit {
    Unit::Celsius
}

/// Takes nothing.
#[tool(crate = "crate")]
fn nothing() -> &'static str {
    "called"
}

#[tokio::test]
async fn optional_arguments_may_be_left_out() {
    let least = run(&forecast, json!({"city": "Paris"}), &()).await;
    assert_eq!(least.unwrap(), "Paris None Celsius None");
    let all = json!({"city": "Paris", "days": 2, "unit": "kelvin", "type": "rain"});
    assert_eq!(run(&forecast, all, &()).await.unwrap(), r#"Paris Some(2) Kelvin Some("rain")"#);
    let null = json!({"city": "Paris", "days": null});
    assert_eq!(run(&forecast, null, &()).await.unwrap(), "Paris None Celsius None");
    assert_eq!(run(&nothing, json!({}), &()).await.unwrap(), "called");
}

#[tokio::test]
async fn wrong_arguments_are_told_to_the_model() {
    let mut errors = Vec::new();
    for input in [json!({}), json!({"city": 1}), json!({"city": "P", "town": "P"})] {
        errors.push(run(&forecast, input, &()).await.unwrap_err());
    }
    assert_eq!(
        errors,
        [
            "The arguments of forecast are not right: missing field `city`. Call it again.",
            "The arguments of forecast are not right: invalid type: integer `1`, expected a \
             string. Call it again.",
            "The arguments of forecast are not right: unknown field `town`, expected one of \
             `city`, `days`, `unit`, `type`. Call it again.",
        ]
    );
}

#[test]
fn attributes_and_types_shape_the_schema() {
    let schema = ToolHandler::<()>::definition(&forecast).parameters;
    let schema = schema.as_value();
    assert_eq!(schema["required"], json!(["city"]));
    assert_eq!(
        schema["properties"]["city"],
        json!({"description": "City name", "type": "string", "minLength": 1})
    );
    assert_eq!(schema["properties"]["unit"]["enum"], json!(["celsius", "kelvin"]));
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["city", "days", "unit", "type"]);
    let empty = ToolHandler::<()>::definition(&nothing).parameters;
    assert_eq!(empty.as_value(), &json!({"type": "object", "additionalProperties": false}));
}
