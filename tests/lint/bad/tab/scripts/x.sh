#!/bin/bash
	true
