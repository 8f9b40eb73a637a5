"""The filters of joint groups: what is predicted, what is observed, what is believed."""
