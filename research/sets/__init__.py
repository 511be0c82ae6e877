"""Public measurements of serving, dealt by run to folds that are predicted without themselves."""
